// What applications do with amqp091-go; each scenario prints its name and how it went.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const waitLimit = 10 * time.Second

func main() {
	for _, one := range scenarios {
		fmt.Printf("%s\t%s\n", one.name, outcome(os.Args[1], one.run))
	}
}

// outcome runs a scenario on a connection of its own.
func outcome(url string, run func(*amqp.Connection)) (result string) {
	connection, err := amqp.Dial(url)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	defer func() {
		if failure := recover(); failure != nil {
			result = strings.ReplaceAll(fmt.Sprint(failure), "\n", " ")
		}
	}()
	run(connection)
	return "passed"
}

// client is a channel whose errors end the scenario.
type client struct{ *amqp.Channel }

func open(connection *amqp.Connection) client {
	channel, err := connection.Channel()
	check(err)
	return client{channel}
}

func confirming(connection *amqp.Connection) client {
	channel := open(connection)
	check(channel.Confirm(false))
	return channel
}

// queue declares an exclusive queue whose name the broker chooses.
func (channel client) queue(arguments amqp.Table) string {
	queue, err := channel.QueueDeclare("", false, false, true, false, arguments)
	check(err)
	return queue.Name
}

// durable declares a durable queue, which the scenario has to delete.
func (channel client) durable(arguments amqp.Table) string {
	name := fresh()
	_, err := channel.QueueDeclare(name, true, false, false, false, arguments)
	check(err)
	return name
}

func fresh() string {
	return fmt.Sprintf("go-%d-%d", os.Getpid(), time.Now().UnixNano())
}

func (channel client) deleteQueue(queue string) {
	_, err := channel.QueueDelete(queue, false, false, false)
	check(err)
}

func (channel client) send(queue string, message amqp.Publishing) {
	check(channel.PublishWithContext(context.Background(), "", queue, false, false, message))
}

// confirmed publishes and gives the broker's answer.
func (channel client) confirmed(exchange, key string, mandatory bool, message amqp.Publishing) bool {
	limited, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	confirm, err := channel.PublishWithDeferredConfirmWithContext(
		limited, exchange, key, mandatory, false, message)
	check(err)
	acked, err := confirm.WaitContext(limited)
	check(err)
	return acked
}

func (channel client) ready(queue string) int {
	found, err := channel.QueueInspect(queue)
	check(err)
	return found.Messages
}

// inbox consumes a queue.
func (channel client) inbox(queue, tag string, noAck bool, arguments amqp.Table) <-chan amqp.Delivery {
	deliveries, err := channel.Consume(queue, tag, noAck, false, false, false, arguments)
	check(err)
	return deliveries
}

func text(body string) amqp.Publishing {
	return amqp.Publishing{Body: []byte(body)}
}

// next waits for one value; a closed channel is an error.
func next[Value any](values <-chan Value) Value {
	select {
	case value, open := <-values:
		if !open {
			panic("closed instead of one more")
		}
		return value
	case <-time.After(waitLimit):
		panic("nothing came")
	}
}

func bodies(deliveries <-chan amqp.Delivery, count int) []string {
	var found []string
	for len(found) < count {
		found = append(found, string(next(deliveries).Body))
	}
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(expected, found any) {
	if !reflect.DeepEqual(expected, found) {
		panic(fmt.Sprintf("%v was expected, %v is there", expected, found))
	}
}
