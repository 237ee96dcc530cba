// What KEDA's scaler asks about queues, and the fields by which it decides; each has to be there.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
	. "warren/tests/clients/checks"
)

type details struct {
	Rate *float64 `json:"rate"`
}

type queue struct {
	Name           *string `json:"name"`
	Messages       *int    `json:"messages"`
	Unacknowledged *int    `json:"messages_unacknowledged"`
	Stats          *struct {
		Publish    *details `json:"publish_details"`
		DeliverGet *details `json:"deliver_get_details"`
	} `json:"message_stats"`
}

type page struct {
	Queues *[]queue `json:"items"`
	Pages  *int     `json:"page_count"`
}

func main() {
	Run([]Check{{"a queue", one}, {"queues by a pattern", pattern}, {"a queue that is not there", missing}})
}

// get decodes an answer and gives its status.
func get(path string, into any) int {
	parsed := Got(url.Parse(os.Args[1] + "/api" + path))
	parsed.User = url.UserPassword("guest", "guest")
	response := Got(http.Get(parsed.String()))
	defer response.Body.Close()
	Must(json.NewDecoder(response.Body).Decode(into))
	return response.StatusCode
}

func one() {
	channel := Got(Got(amqp.Dial(os.Args[2])).Channel())
	for _, name := range []string{"jobs-1", "jobs-2", "other"} {
		Got(channel.QueueDeclare(name, true, false, false, false, nil))
	}
	for number := 0; number < 3; number++ {
		Must(channel.PublishWithContext(context.Background(), "", "jobs-1", false, false, amqp.Publishing{}))
	}
	Wait(func() bool { _, there, err := channel.Get("jobs-1", false); return Got(there, err) }, "a message")
	var found queue
	Wait(func() bool { found = queue{}; get("/queues/%2F/jobs-1", &found); return found.hasRates() }, "rates")
	Equal([]any{"jobs-1", 3, 1}, []any{*found.Name, *found.Messages, *found.Unacknowledged})
}

func (found queue) hasRates() bool {
	return found.Stats != nil && found.Stats.Publish != nil && found.Stats.Publish.Rate != nil &&
		found.Stats.DeliverGet != nil && found.Stats.DeliverGet.Rate != nil
}

func pattern() {
	for _, vhost := range []string{"", "/%2F"} {
		for pages, size := range map[int]int{1: 100, 2: 1} {
			var found page
			query := fmt.Sprint("?page=1&use_regex=true&pagination=false&name=%5Ejobs-&page_size=", size)
			Equal(http.StatusOK, get("/queues"+vhost+query, &found))
			Equal(pages, *found.Pages)
			Equal(min(size, 2), len(*found.Queues))
			for _, one := range *found.Queues {
				True(one.Name != nil && one.Messages != nil && one.Unacknowledged != nil, "every field")
			}
		}
	}
}

func min(one, other int) int {
	if one < other {
		return one
	}
	return other
}

func missing() {
	var problem struct{ Error, Reason string }
	Equal(http.StatusNotFound, get("/queues/%2F/none", &problem))
	True(problem.Error != "" && problem.Reason != "", "error and reason")
}
