package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	amqp "github.com/rabbitmq/amqp091-go"
	. "warren/tests/clients/checks"
)

func overview() {
	found := Got(api.Overview())
	for _, text := range []string{found.ManagementVersion, found.RabbitMQVersion, found.ErlangVersion, found.FullErlangVersion, found.Node} {
		True(text != "", "a text for every version")
	}
	Equal(1, found.ObjectTotals.Connections)
	find(found.Listeners, func(one rabbithole.Listener) bool { return one.Protocol == "amqp" })
	find(found.ExchangeTypes, func(one rabbithole.ExchangeType) bool { return one.Name == "topic" && one.Enabled })
	node := Got(api.GetNode(found.Node))
	Equal([]any{found.Node, "disc", true, false, false}, []any{node.Name, node.NodeType, node.IsRunning, node.MemAlarm, node.DiskFreeAlarm})
	True(node.OsPid != "" && node.Uptime > 0 && node.Processors > 0 && node.MemLimit > 0 && node.FdTotal > 0, "the node's figures")
	Equal(1, len(Got(api.ListNodes())))
	Equal("guest", Got(api.Whoami()).Name)
	Equal(2, len(Got(api.ProtocolPorts())))
	Equal(2, len(Got(api.EnabledProtocols())))
	name := Got(api.GetClusterName())
	answered(api.SetClusterName(rabbithole.ClusterName{Name: "ours"}))(http.StatusNoContent)
	Equal("ours", Got(api.GetClusterName()).Name)
	answered(api.SetClusterName(*name))(http.StatusNoContent)
	stranger := Got(rabbithole.NewClient(api.Endpoint, "guest", "wrong"))
	_, err := stranger.Overview()
	True(err != nil && strings.Contains(err.Error(), "401"), "a login that is refused")
}

func featureFlags() {
	flag := find(Got(api.ListFeatureFlags()), func(one rabbithole.FeatureFlag) bool { return one.Name == "quorum_queue" })
	Equal([]any{rabbithole.StateEnabled, rabbithole.StabilityStable}, []any{flag.State, flag.Stability})
	answered(api.EnableFeatureFlag(flag.Name))(http.StatusNoContent)
}

func healthChecks() {
	port := find(Got(api.Overview()).Listeners, func(one rabbithole.Listener) bool { return one.Protocol == "amqp" }).Port
	alarms, local := Got(api.HealthCheckAlarms()), Got(api.HealthCheckLocalAlarms())
	True(alarms.Ok() && local.Ok(), "no alarm")
	certificates, hosts := Got(api.HealthCheckCertificateExpiration(1, rabbithole.DAYS)), Got(api.HealthCheckVirtualHosts())
	mirrors, quorum := Got(api.HealthCheckNodeIsMirrorSyncCritical()), Got(api.HealthCheckNodeIsQuorumCritical())
	True(certificates.Ok() && hosts.Ok() && mirrors.Ok() && quorum.Ok(), "health")
	listener, amqp091 := Got(api.HealthCheckPortListener(uint(port))), Got(api.HealthCheckProtocolListener(rabbithole.AMQP091))
	True(listener.Ok() && amqp091.Ok(), "listeners")
	Equal(uint(port), listener.Port)
	closed, mqtt := Got(api.HealthCheckPortListener(1)), Got(api.HealthCheckProtocolListener(rabbithole.MQTT))
	Equal([]any{"failed", uint(1), "failed", "mqtt"}, []any{closed.Status, closed.Missing, mqtt.Status, mqtt.Missing})
	True(len(closed.Ports) > 0 && len(mqtt.Protocols) > 0, "what listens instead")
}

func messages() {
	Must(channel.Confirm(false))
	for number := 0; number < 3; number++ {
		confirmation := Got(channel.PublishWithDeferredConfirmWithContext(context.Background(), "", "mail/1", false, false, amqp.Publishing{Body: []byte("hello")}))
		True(confirmation.Wait(), "a confirm")
	}
	figures := func() *rabbithole.DetailedQueueInfo { return Got(api.GetQueue(vhost, "mail/1")) }
	Wait(func() bool { return figures().MessageStats != nil && figures().MessageStats.Publish == 3 }, "the rates' first sample")
	found := figures()
	Equal([]any{3, 3, 0}, []any{found.Messages, found.MessagesReady, found.MessagesUnacknowledged})
	True(found.MessagesBytes >= 15, "the size of the messages")
	Equal(3, Got(api.GetVhost(vhost)).Messages)
	totals := Got(api.Overview())
	Equal([]any{3, true}, []any{totals.QueueTotals.Messages, totals.MessageStats.Publish >= 3})
	_, err := api.DeleteQueue(vhost, "mail/1", rabbithole.QueueDeleteOptions{IfEmpty: true})
	refused(http.StatusBadRequest, err)
	answered(api.PurgeQueue(vhost, "mail/1"))(http.StatusNoContent)
	Equal(0, figures().Messages)
}

func consumers() {
	Must(channel.Qos(5, 0, false))
	Got(channel.Consume("mail/1", "reader", false, false, false, false, nil))
	for _, list := range [][]rabbithole.ConsumerInfo{Got(api.ListConsumers()), Got(api.ListConsumersIn(vhost))} {
		Equal(1, len(list))
		found := list[0]
		Equal([]any{"reader", 5, rabbithole.ManualAcknowledgement, false}, []any{found.ConsumerTag, found.PrefetchCount, found.AcknowledgementMode, found.Exclusive})
		Equal(rabbithole.BriefQueueInfo{Name: "mail/1", Vhost: vhost}, found.Queue)
		Equal([]any{"guest", 1}, []any{found.ChannelDetails.User, found.ChannelDetails.Number})
	}
	details := *Got(api.GetQueue(vhost, "mail/1")).ConsumerDetails
	Equal([]any{1, "reader", true}, []any{len(details), details[0].ConsumerTag, details[0].Active})
	listed := Got(api.ListChannels())
	Equal(1, len(listed))
	one := Got(api.GetChannel(listed[0].Name))
	Equal([]any{1, 1, true, vhost, "guest"}, []any{one.Number, one.ConsumerCount, one.UsesPublisherConfirms, one.Vhost, one.User})
	Equal(fmt.Sprint(one.ConnectionDetails.Name, " (1)"), one.Name)
	Must(channel.Cancel("reader", false))
	gone(api.GetChannel("none"))
}

func connections() {
	listed := Got(api.ListConnections())
	Equal(1, len(listed))
	Equal(1, len(Got(api.ListVhostConnections(vhost))))
	one := Got(api.GetConnection(listed[0].Name))
	Equal([]any{"AMQP 0-9-1", "guest", vhost, "running", 1, false, "network"}, []any{one.Protocol, one.User, one.Vhost, one.State, one.Channels, one.UsesTLS, one.Type})
	True(one.RecvOct > 0 && one.SendOct > 0 && one.ConnectedAt > 0 && one.FrameMax > 0 && one.PeerPort > 0, "the connection's figures")
	Equal("AMQP 0.9.1 Client", one.ClientProperties["product"])
	closed := connection.NotifyClose(make(chan *amqp.Error, 1))
	answered(api.CloseConnection(one.Name))(http.StatusNoContent)
	Equal(amqp.ConnectionForced, (<-closed).Code)
	Wait(func() bool { return len(Got(api.ListConnections())) == 0 }, "the connection's end in the list")
	gone(api.GetConnection(one.Name))
}
