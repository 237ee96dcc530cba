package main

import (
	"net/http"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	. "warren/tests/clients/checks"
)

func virtualHosts() {
	found := Got(api.GetVhost(vhost))
	Equal([]any{vhost, "first", false}, []any{found.Name, found.Description, found.Tracing})
	changed := rabbithole.VhostSettings{Description: "second", Tags: rabbithole.VhostTags{"a", "b"}}
	answered(api.PutVhost(vhost, changed))(http.StatusNoContent)
	found = Got(api.GetVhost(vhost))
	Equal([]any{"second", rabbithole.VhostTags{"a", "b"}}, []any{found.Description, found.Tags})
	Equal(1, len(found.ClusterState))
	listed := find(Got(api.ListVhosts()), func(one rabbithole.VhostInfo) bool { return one.Name == vhost })
	Equal(found.Tags, listed.Tags)
	gone(api.GetVhost("none"))
}

func limits() {
	values := rabbithole.VhostLimitsValues{"max-queues": 100, "max-connections": 50}
	answered(api.PutVhostLimits(vhost, values))(http.StatusCreated)
	set := rabbithole.VhostLimitsInfo{Vhost: vhost, Value: values}
	Equal([]rabbithole.VhostLimitsInfo{set}, Got(api.GetVhostLimits(vhost)))
	Equal([]rabbithole.VhostLimitsInfo{set}, Got(api.GetAllVhostLimits()))
	answered(api.DeleteVhostLimits(vhost, rabbithole.VhostLimits{"max-queues", "max-connections"}))(http.StatusNoContent)
	Equal(0, len(Got(api.GetVhostLimits(vhost))))
	channels := rabbithole.UserLimitsValues{"max-channels": 30}
	answered(api.PutUserLimits("guest", channels))(http.StatusCreated)
	Equal([]rabbithole.UserLimitsInfo{{User: "guest", Value: channels}}, Got(api.GetUserLimits("guest")))
	Equal(1, len(Got(api.GetAllUserLimits())))
	answered(api.DeleteUserLimits("guest", rabbithole.UserLimits{"max-channels"}))(http.StatusNoContent)
	Equal(0, len(Got(api.GetUserLimits("guest"))))
}

func users() {
	settings := rabbithole.UserSettings{Password: "eleven purple rabbits", Tags: rabbithole.UserTags{"management", "policymaker"}}
	answered(api.PutUser("ann", settings))(http.StatusCreated)
	found := Got(api.GetUser("ann"))
	Equal(settings.Tags, found.Tags)
	True(found.PasswordHash != "" && found.HashingAlgorithm != "", "a hash and its algorithm")
	hashed := rabbithole.UserSettings{
		PasswordHash:     rabbithole.Base64EncodedSaltedPasswordHashSHA512("twelve"),
		HashingAlgorithm: rabbithole.HashingAlgorithmSHA512,
		Tags:             rabbithole.UserTags{"management"},
	}
	answered(api.PutUser("ann", hashed))(http.StatusNoContent)
	me := Got(Got(rabbithole.NewClient(api.Endpoint, "ann", "twelve")).Whoami())
	Equal([]any{"ann", hashed.Tags}, []any{me.Name, me.Tags})
	answered(api.PutUserWithoutPassword("bob", rabbithole.UserSettings{}))(http.StatusCreated)
	Equal("", Got(api.GetUser("bob")).PasswordHash)
	Equal(3, len(Got(api.ListUsers())))
	answered(api.DeleteUser("bob"))(http.StatusNoContent)
	gone(api.GetUser("bob"))
	answered(api.DeleteUser("bob"))(http.StatusNotFound)
}

func permissions() {
	rules := rabbithole.Permissions{Configure: "^a", Write: "", Read: ".*"}
	answered(api.UpdatePermissionsIn(vhost, "ann", rules))(http.StatusCreated)
	set := rabbithole.PermissionInfo{User: "ann", Vhost: vhost, Configure: "^a", Write: "", Read: ".*"}
	Equal(set, Got(api.GetPermissionsIn(vhost, "ann")))
	Equal([]rabbithole.PermissionInfo{set}, Got(api.ListPermissionsOf("ann")))
	find(Got(api.ListPermissions()), func(one rabbithole.PermissionInfo) bool { return one == set })
	topics := rabbithole.TopicPermissions{Exchange: "amq.topic", Write: "^a", Read: "^b"}
	answered(api.UpdateTopicPermissionsIn(vhost, "ann", topics))(http.StatusCreated)
	topic := []rabbithole.TopicPermissionInfo{{User: "ann", Vhost: vhost, Exchange: "amq.topic", Write: "^a", Read: "^b"}}
	Equal(topic, Got(api.GetTopicPermissionsIn(vhost, "ann")))
	Equal(topic, Got(api.ListTopicPermissionsOf("ann")))
	Equal(topic, Got(api.ListTopicPermissions()))
	answered(api.DeleteTopicPermissionsIn(vhost, "ann", "amq.topic"))(http.StatusNoContent)
	gone(api.GetTopicPermissionsIn(vhost, "ann"))
	answered(api.ClearPermissionsIn(vhost, "ann"))(http.StatusNoContent)
	gone(api.GetPermissionsIn(vhost, "ann"))
	answered(api.DeleteUser("ann"))(http.StatusNoContent)
}
