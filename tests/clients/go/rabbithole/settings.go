package main

import (
	"net/http"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	. "warren/tests/clients/checks"
)

func policies() {
	policy := rabbithole.Policy{Pattern: "^mail", ApplyTo: "queues", Priority: 3, Definition: rabbithole.PolicyDefinition{"message-ttl": 60000.0}}
	answered(api.PutPolicy(vhost, "short", policy))(http.StatusCreated)
	answered(api.PutPolicy(vhost, "short", policy))(http.StatusNoContent)
	policy.Vhost, policy.Name = vhost, "short"
	Equal(&policy, Got(api.GetPolicy(vhost, "short")))
	Equal([]rabbithole.Policy{policy}, Got(api.ListPoliciesIn(vhost)))
	Equal([]rabbithole.Policy{policy}, Got(api.ListPolicies()))
	Wait(func() bool { return Got(api.GetQueue(vhost, "mail/1")).Policy == "short" }, "the policy's name at the queue")
	_, err := api.PutPolicy(vhost, "bad", rabbithole.Policy{Pattern: "(", ApplyTo: "queues", Definition: policy.Definition})
	refused(http.StatusBadRequest, err)
	answered(api.DeletePolicy(vhost, "short"))(http.StatusNoContent)
	gone(api.GetPolicy(vhost, "short"))
}

func operatorPolicies() {
	policy := rabbithole.OperatorPolicy{Pattern: "^mail", ApplyTo: "queues", Priority: 1, Definition: rabbithole.PolicyDefinition{"expires": 3600000.0}}
	answered(api.PutOperatorPolicy(vhost, "bound", policy))(http.StatusCreated)
	policy.Vhost, policy.Name = vhost, "bound"
	Equal(&policy, Got(api.GetOperatorPolicy(vhost, "bound")))
	Equal([]rabbithole.OperatorPolicy{policy}, Got(api.ListOperatorPoliciesIn(vhost)))
	Equal([]rabbithole.OperatorPolicy{policy}, Got(api.ListOperatorPolicies()))
	answered(api.DeleteOperatorPolicy(vhost, "bound"))(http.StatusNoContent)
	gone(api.GetOperatorPolicy(vhost, "bound"))
}

func shovelsAndUpstreams() {
	definition := rabbithole.ShovelDefinition{
		SourceURI: rabbithole.URISet{"amqp://"}, SourceQueue: "mail/1", DestinationURI: rabbithole.URISet{"amqp://", "amqp:///%2F"},
		DestinationQueue: "out", AckMode: "on-confirm", DeleteAfter: "never",
	}
	_, err := api.DeclareShovel(vhost, "move", definition)
	refused(http.StatusBadRequest, err)
	gone(api.GetShovel(vhost, "move"))
	Equal(0, len(Got(api.ListShovelsIn(vhost)))+len(Got(api.ListShovels()))+len(Got(api.ListShovelStatus(vhost))))
	upstream := rabbithole.FederationDefinition{Uri: rabbithole.URISet{"amqp://a.example"}, MaxHops: 2, AckMode: "on-confirm", Exchange: "news"}
	_, err = api.PutFederationUpstream(vhost, "up", upstream)
	refused(http.StatusBadRequest, err)
	gone(api.GetFederationUpstream(vhost, "up"))
	Equal(0, len(Got(api.ListFederationUpstreamsIn(vhost)))+len(Got(api.ListFederationUpstreams())))
	Equal(0, len(Got(api.ListFederationLinks()))+len(Got(api.ListFederationLinksIn(vhost))))
}

func globalParameters() {
	answered(api.PutGlobalParameter("mode", map[string]any{"x": 1.0}))(http.StatusCreated)
	set := rabbithole.GlobalRuntimeParameter{Name: "mode", Value: map[string]any{"x": 1.0}}
	Equal(&set, Got(api.GetGlobalParameter("mode")))
	find(Got(api.ListGlobalParameters()), func(one rabbithole.GlobalRuntimeParameter) bool { return one.Name == "mode" })
	answered(api.DeleteGlobalParameter("mode"))(http.StatusNoContent)
	gone(api.GetGlobalParameter("mode"))
	_, err := api.PutRuntimeParameter("federation-upstream", vhost, "p", map[string]any{"uri": "amqp://b.example"})
	refused(http.StatusBadRequest, err)
	gone(api.GetRuntimeParameter("federation-upstream", vhost, "p"))
	Equal(0, len(Got(api.ListRuntimeParametersFor("federation-upstream")))+len(Got(api.ListRuntimeParametersIn("federation-upstream", vhost))))
	Must(api.DeleteAllRuntimeParameters())
	Equal(0, len(Got(api.ListRuntimeParameters())))
}

// definitions are read, and given back as they are.
func definitions() {
	whole := Got(api.ListDefinitions())
	find(*whole.Queues, func(one rabbithole.QueueInfo) bool { return one.Name == "mail/1" })
	find(*whole.Vhosts, func(one rabbithole.VhostInfo) bool { return one.Name == vhost })
	Equal(1, len(*whole.Users))
	part := Got(api.ListVhostDefinitions(vhost))
	Equal([]any{1, 1}, []any{len(*part.Queues), len(*part.Exchanges)})
	Equal(true, part.Users == nil && part.Vhosts == nil)
	extra := rabbithole.ExportedDefinitions{
		Policies: &[]rabbithole.PolicyDefinition{}, Exchanges: &[]rabbithole.ExchangeInfo{}, Bindings: &[]rabbithole.BindingInfo{},
		Queues: &[]rabbithole.QueueInfo{{Name: "imported", Vhost: vhost, Durable: true, Arguments: map[string]any{}}},
	}
	answered(api.UploadDefinitions(&extra))(http.StatusNoContent)
	answered(api.DeleteQueue(vhost, "imported"))(http.StatusNoContent)
}
