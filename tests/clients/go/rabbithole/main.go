// What Terraform's provider and others do with rabbit-hole: its calls over every object it knows.
package main

import (
	"fmt"
	"net/http"
	"os"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
	amqp "github.com/rabbitmq/amqp091-go"
	. "warren/tests/clients/checks"
)

const vhost = "team/a" // with a slash, so that every path has to be decoded

var (
	api        *rabbithole.Client
	connection *amqp.Connection
	channel    *amqp.Channel
)

func main() {
	api = Got(rabbithole.NewClient(os.Args[1], "guest", "guest"))
	answered(api.PutVhost(vhost, rabbithole.VhostSettings{Description: "first"}))(http.StatusCreated)
	connection = Got(amqp.DialConfig(os.Args[2], amqp.Config{Vhost: vhost}))
	channel = Got(connection.Channel())
	Run([]Check{
		{"overview and nodes", overview},
		{"virtual hosts", virtualHosts},
		{"limits", limits},
		{"users", users},
		{"permissions", permissions},
		{"exchanges", exchanges},
		{"queues", queues},
		{"bindings", bindings},
		{"policies", policies},
		{"operator policies", operatorPolicies},
		{"shovels and upstreams", shovelsAndUpstreams},
		{"global parameters", globalParameters},
		{"definitions", definitions},
		{"feature flags", featureFlags},
		{"health checks", healthChecks},
		{"messages and figures", messages},
		{"pages", pages},
		{"consumers", consumers},
		{"connections", connections},
		{"the end of a virtual host", theEnd},
	})
}

// answered gives a function that demands a status of an answer without an error.
func answered(response *http.Response, err error) func(status int) *http.Response {
	Must(err)
	response.Body.Close()
	return func(status int) *http.Response {
		Equal(status, response.StatusCode)
		return response
	}
}

// refused demands that a call has failed with a status, and with the two fields of an error.
func refused(status int, err error) {
	problem, ok := err.(rabbithole.ErrorResponse)
	True(ok, fmt.Sprintf("an answer with %d, not %v", status, err))
	Equal(status, problem.StatusCode)
	True(problem.Message != "" && problem.Reason != "", "error and reason of "+problem.Error())
}

func gone[T any](_ T, err error) { refused(http.StatusNotFound, err) }

// find gives the one item of a list for which something is so.
func find[T any](items []T, so func(T) bool) T {
	var found []T
	for _, item := range items {
		if so(item) {
			found = append(found, item)
		}
	}
	Equal(1, len(found))
	return found[0]
}
