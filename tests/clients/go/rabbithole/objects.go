package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	. "warren/tests/clients/checks"
)

var durable = rabbithole.QueueSettings{Type: "classic", Durable: true}

func exchanges() {
	settings := rabbithole.ExchangeSettings{Type: "topic", Durable: true, Arguments: map[string]any{"alternate-exchange": "amq.fanout"}}
	answered(api.DeclareExchange(vhost, "news", settings))(http.StatusCreated)
	answered(api.DeclareExchange(vhost, "news", settings))(http.StatusNoContent)
	found := Got(api.GetExchange(vhost, "news"))
	Equal([]any{"news", vhost, "topic", true, false, false}, []any{found.Name, found.Vhost, found.Type, found.Durable, found.AutoDelete, found.Internal})
	Equal(settings.Arguments, found.Arguments)
	_, err := api.DeclareExchange(vhost, "news", rabbithole.ExchangeSettings{Type: "fanout", Durable: true})
	refused(http.StatusBadRequest, err)
	answered(api.DeclareExchange(vhost, "inbox", rabbithole.ExchangeSettings{Type: "fanout"}))(http.StatusCreated)
	Equal(9, len(Got(api.ListExchangesIn(vhost))))
	find(Got(api.ListExchanges()), func(one rabbithole.ExchangeInfo) bool { return one.Name == "news" })
}

func queues() {
	settings := durable
	settings.Arguments = map[string]any{"x-max-length": 7.0, "x-overflow": "drop-head"}
	answered(api.DeclareQueue(vhost, "mail/1", settings))(http.StatusCreated)
	answered(api.DeclareQueue(vhost, "mail/1", settings))(http.StatusNoContent)
	found := Got(api.GetQueue(vhost, "mail/1"))
	Equal([]any{"mail/1", vhost, "classic", true, false}, []any{found.Name, found.Vhost, found.Type, found.Durable, bool(found.AutoDelete)})
	Equal([]any{7.0, "drop-head", "running"}, []any{found.Arguments["x-max-length"], found.Arguments["x-overflow"], found.Status})
	_, err := api.DeclareQueue(vhost, "mail/1", durable)
	refused(http.StatusBadRequest, err)
	answered(api.DeclareQueue(vhost, "votes", rabbithole.QueueSettings{Type: "quorum", Durable: true, Arguments: map[string]any{"x-queue-type": "quorum"}}))(http.StatusCreated)
	quorum := Got(api.GetQueue(vhost, "votes"))
	Equal([]any{"quorum", quorum.Node, []string{quorum.Node}}, []any{quorum.Type, quorum.Leader, quorum.Online})
	Equal(2, len(Got(api.ListQueuesIn(vhost))))
	Equal(2, len(Got(api.ListQueues())))
	answered(api.SyncQueue(vhost, "mail/1"))(http.StatusNoContent)
	answered(api.DeleteQueue(vhost, "votes", rabbithole.QueueDeleteOptions{IfEmpty: true, IfUnused: true}))(http.StatusNoContent)
	gone(api.GetQueue(vhost, "votes"))
}

// bindings does as the provider: it takes the properties key from Location, reads, and deletes by it.
func bindings() {
	for _, info := range []rabbithole.BindingInfo{
		{Source: "news", Destination: "mail/1", DestinationType: "queue", RoutingKey: "eu.#/x"},
		{Source: "news", Destination: "mail/1", DestinationType: "queue"},
		{Source: "news", Destination: "mail/1", DestinationType: "queue", RoutingKey: "eu", Arguments: map[string]any{"a": 1.0}},
		{Source: "news", Destination: "inbox", DestinationType: "exchange", RoutingKey: "us.*"},
	} {
		location := answered(api.DeclareBinding(vhost, info))(http.StatusCreated).Header.Get("Location")
		parts := strings.Split(location, "/")
		info.PropertiesKey = Got(url.PathUnescape(parts[len(parts)-1]))
		made := find(between(info), func(one rabbithole.BindingInfo) bool { return one.PropertiesKey == info.PropertiesKey })
		Equal([]any{info.RoutingKey, vhost, info.DestinationType}, []any{made.RoutingKey, made.Vhost, made.DestinationType})
		Equal(len(info.Arguments), len(made.Arguments))
		find(Got(api.ListBindingsIn(vhost)), func(one rabbithole.BindingInfo) bool { return fmt.Sprint(one) == fmt.Sprint(made) })
		find(Got(api.ListBindings()), func(one rabbithole.BindingInfo) bool { return fmt.Sprint(one) == fmt.Sprint(made) })
		Equal(1, len(Got(api.ListExchangeBindingsWithSource(vhost, "news"))))
		answered(api.DeleteBinding(vhost, info))(http.StatusNoContent)
		answered(api.DeleteBinding(vhost, info))(http.StatusNotFound)
		Equal(0, len(between(info)))
	}
	Equal(1, len(Got(api.ListQueueBindings(vhost, "mail/1"))))
	Equal(0, len(Got(api.ListExchangeBindingsWithDestination(vhost, "inbox"))))
}

func between(info rabbithole.BindingInfo) []rabbithole.BindingInfo {
	if info.DestinationType == "queue" {
		return Got(api.ListQueueBindingsBetween(vhost, info.Source, info.Destination))
	}
	return Got(api.ListExchangeBindingsBetween(vhost, info.Source, info.Destination))
}

func pages() {
	for number := 0; number < 5; number++ {
		answered(api.DeclareQueue(vhost, fmt.Sprint("page-", number), durable))(http.StatusCreated)
	}
	query := url.Values{"page": {"2"}, "page_size": {"2"}, "name": {"^page-"}, "use_regex": {"true"}, "sort": {"name"}, "sort_reverse": {"true"}}
	for _, page := range []rabbithole.PagedQueueInfo{
		Got(api.PagedListQueuesWithParameters(query)), Got(api.PagedListQueuesWithParametersIn(vhost, query)),
	} {
		Equal([]any{2, 3, 2, 5, 2, 6}, []any{page.Page, page.PageCount, page.PageSize, page.FilteredCount, page.ItemCount, page.TotalCount})
		Equal([]string{"page-2", "page-1"}, []string{page.Items[0].Name, page.Items[1].Name})
	}
	columns := url.Values{"columns": {"name,messages"}, "sort": {"name"}}
	Equal(rabbithole.QueueInfo{Name: "mail/1"}, Got(api.ListQueuesWithParameters(columns))[0])
	Equal(6, len(Got(api.ListQueuesWithParametersIn(vhost, columns))))
	_, err := api.PagedListQueuesWithParameters(url.Values{"page": {"9"}})
	refused(http.StatusBadRequest, err)
	for number := 0; number < 5; number++ {
		answered(api.DeleteQueue(vhost, fmt.Sprint("page-", number)))(http.StatusNoContent)
	}
}

func theEnd() {
	answered(api.DeleteExchange(vhost, "inbox"))(http.StatusNoContent)
	gone(api.GetExchange(vhost, "inbox"))
	answered(api.DeleteQueue(vhost, "mail/1"))(http.StatusNoContent)
	gone(api.GetQueue(vhost, "mail/1"))
	answered(api.PurgeQueue(vhost, "none-such"))(http.StatusNotFound)
	answered(api.DeleteVhost(vhost))(http.StatusNoContent)
	gone(api.GetVhost(vhost))
	gone(api.ListQueuesIn(vhost))
}
