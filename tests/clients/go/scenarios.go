package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const payloadBytes = 131_072 - 8 // of a body frame, with the frame size both sides agree on

var scenarios = []struct {
	name string
	run  func(*amqp.Connection)
}{
	{"publishes are confirmed", confirms},
	{"unroutable messages come back", returns},
	{"a full queue says nack", nacks},
	{"a transaction is committed or rolled back", transaction},
	{"calls are answered", calls},
	{"numbers may be of any width", numbers},
	{"a bad argument closes the channel", badArgument},
	{"properties and headers arrive as they were sent", properties},
	{"bodies of all sizes arrive", sizes},
	{"a prefetch bounds what is delivered", prefetch},
	{"dead letters tell where they were", deadLetters},
	{"the end of a queue cancels its consumer", cancels},
	{"messages with a priority go first", priorities},
	{"a single active consumer hands over", singleActive},
	{"a quorum queue counts what came back", quorum},
	{"a stream is read from anywhere", stream},
}

func confirms(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.queue(nil)
	answers := channel.NotifyPublish(make(chan amqp.Confirmation, 1000))
	for number := 0; number < 1000; number++ {
		message := text(fmt.Sprint(number))
		message.DeliveryMode = amqp.Persistent
		channel.send(queue, message)
	}
	for number := 0; number < 1000; number++ {
		equal(amqp.Confirmation{DeliveryTag: uint64(number + 1), Ack: true}, next(answers))
	}
	equal(1000, channel.ready(queue))
}

func returns(connection *amqp.Connection) {
	channel := confirming(connection)
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	equal(true, channel.confirmed("amq.direct", "nobody", true, text("lost?")))
	message := next(returned)
	equal("312 NO_ROUTE lost?", fmt.Sprint(message.ReplyCode, " ", message.ReplyText, " ", string(message.Body)))
}

func nacks(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.queue(amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	equal(true, channel.confirmed("", queue, false, text("1")))
	equal(false, channel.confirmed("", queue, false, text("2")))
	equal(1, channel.ready(queue))
}

func transaction(connection *amqp.Connection) {
	channel := open(connection)
	queue := channel.queue(nil)
	check(channel.Tx())
	channel.send(queue, text("1"))
	check(channel.TxRollback())
	channel.send(queue, text("2"))
	equal(0, channel.ready(queue))
	check(channel.TxCommit())
	message, found, err := channel.Get(queue, true)
	check(err)
	equal("true 2", fmt.Sprint(found, " ", string(message.Body)))
	_, found, err = channel.Get(queue, true)
	check(err)
	equal(false, found)
	check(channel.TxCommit())
}

func calls(connection *amqp.Connection) {
	server, caller := open(connection), open(connection)
	queue := server.queue(nil)
	questions := server.inbox(queue, "", true, nil)
	answers := caller.inbox("amq.rabbitmq.reply-to", "", true, nil)
	for number := 0; number < 20; number++ {
		question := text(fmt.Sprint(number))
		question.ReplyTo, question.CorrelationId = "amq.rabbitmq.reply-to", fmt.Sprint("id ", number)
		caller.send(queue, question)
		asked := next(questions)
		answer := text("re: " + string(asked.Body))
		answer.CorrelationId = asked.CorrelationId
		server.send(asked.ReplyTo, answer)
		got := next(answers)
		equal(fmt.Sprintf("id %d re: %d", number, number), got.CorrelationId+" "+string(got.Body))
	}
}

func numbers(connection *amqp.Connection) {
	channel := open(connection)
	queue := fresh()
	for _, number := range []any{5, int8(5), byte(5), int16(5), int32(5), int64(5)} {
		_, err := channel.QueueDeclare(queue, false, false, true, false, amqp.Table{"x-max-length": number})
		check(err)
	}
}

func badArgument(connection *amqp.Connection) {
	broken, sound := open(connection), open(connection)
	_, err := broken.QueueDeclare("go-bad", false, false, true, false, amqp.Table{"x-max-priority": 256})
	refused, isRefused := err.(*amqp.Error)
	if !isRefused {
		panic("256 was taken for a priority")
	}
	equal(406, refused.Code)
	start := "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'go-bad"
	equal(true, strings.HasPrefix(refused.Reason, start))
	equal(true, broken.IsClosed())
	equal(0, sound.ready(sound.queue(nil)))
}

func properties(connection *amqp.Connection) {
	channel := open(connection)
	queue := channel.queue(nil)
	when := time.Unix(1_700_000_000, 0)
	headers := amqp.Table{
		"bool": true, "byte": int8(-3), "octet": byte(200), "short": int16(-300), "int": int32(-70_000),
		"long": int64(1) << 40, "float": float32(0.5), "double": 0.25, "text": "grüße", "nothing": nil,
		"list":  []any{int32(1), "two", []any{int32(3)}},
		"table": amqp.Table{"deep": amqp.Table{"deeper": "x"}},
		"bytes": []byte{0, 206, 255}, "when": when, "decimal": amqp.Decimal{Scale: 2, Value: 314},
	}
	channel.send(queue, amqp.Publishing{
		Headers: headers, ContentType: "application/atom+xml", ContentEncoding: "identity",
		DeliveryMode: amqp.Persistent, Priority: 4, CorrelationId: "c", ReplyTo: "r",
		Expiration: "60000", MessageId: "m", Timestamp: when, Type: "t", UserId: "guest",
		AppId: "a", Body: []byte("body"),
	})
	got := next(channel.inbox(queue, "", true, nil))
	equal(headers, got.Headers)
	equal(
		[]any{"application/atom+xml", "identity", uint8(2), uint8(4), "c", "r", "60000", "m", when, "t", "guest", "a", "body"},
		[]any{got.ContentType, got.ContentEncoding, got.DeliveryMode, got.Priority, got.CorrelationId, got.ReplyTo,
			got.Expiration, got.MessageId, got.Timestamp, got.Type, got.UserId, got.AppId, string(got.Body)},
	)
}

func sizes(connection *amqp.Connection) {
	channel := open(connection)
	queue := channel.queue(nil)
	deliveries := channel.inbox(queue, "", true, nil)
	for _, size := range []int{0, 1, payloadBytes - 1, payloadBytes, payloadBytes + 1, 2 * payloadBytes, 5_000_000} {
		body := make([]byte, size)
		_, err := rand.Read(body)
		check(err)
		channel.send(queue, amqp.Publishing{Body: body})
		if !bytes.Equal(body, next(deliveries).Body) {
			panic(fmt.Sprintf("another body of %d octets", size))
		}
	}
}

func prefetch(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.queue(nil)
	for number := 0; number < 5; number++ {
		equal(true, channel.confirmed("", queue, false, text(fmt.Sprint(number))))
	}
	check(channel.Qos(2, 0, false))
	deliveries := channel.inbox(queue, "", false, nil)
	first, second := next(deliveries), next(deliveries)
	equal(3, channel.ready(queue))
	check(second.Nack(false, true))
	again := next(deliveries)
	equal("1 true", fmt.Sprint(string(again.Body), " ", again.Redelivered))
	check(first.Ack(false))
	equal([]string{"2"}, bodies(deliveries, 1))
	check(again.Ack(true))
	equal([]string{"3"}, bodies(deliveries, 1))
}

func deadLetters(connection *amqp.Connection) {
	channel := open(connection)
	dead := channel.queue(nil)
	work := channel.queue(amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	channel.send(work, text("try me"))
	check(next(channel.inbox(work, "", false, nil)).Reject(false))
	letter := next(channel.inbox(dead, "", true, nil))
	equal("try me", string(letter.Body))
	death := letter.Headers["x-death"].([]any)[0].(amqp.Table)
	equal([]any{work, "rejected", int64(1)}, []any{death["queue"], death["reason"], death["count"]})
	equal("rejected", letter.Headers["x-first-death-reason"])
}

func cancels(connection *amqp.Connection) {
	channel := open(connection)
	queue := channel.queue(nil)
	ended := channel.NotifyCancel(make(chan string, 1))
	deliveries := channel.inbox(queue, "mine", true, nil)
	open(connection).deleteQueue(queue)
	equal("mine", next(ended))
	_, more := <-deliveries
	equal(false, more)
}

func priorities(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.queue(amqp.Table{"x-max-priority": 10})
	for _, priority := range []uint8{1, 9, 5, 99} {
		message := text(fmt.Sprint(priority))
		message.Priority = priority
		equal(true, channel.confirmed("", queue, false, message))
	}
	equal([]string{"99", "9", "5", "1"}, bodies(channel.inbox(queue, "", true, nil), 4))
}

func singleActive(connection *amqp.Connection) {
	channel := open(connection)
	queue := channel.queue(amqp.Table{"x-single-active-consumer": true})
	first := channel.inbox(queue, "first", true, nil)
	second := channel.inbox(queue, "second", true, nil)
	for number := 0; number < 3; number++ {
		channel.send(queue, text(fmt.Sprint(number)))
	}
	equal([]string{"0", "1", "2"}, bodies(first, 3))
	check(channel.Cancel("first", false))
	channel.send(queue, text("3"))
	equal([]string{"3"}, bodies(second, 1))
}

func quorum(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.durable(amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 5})
	defer channel.deleteQueue(queue)
	equal(true, channel.confirmed("", queue, false, text("1")))
	deliveries := channel.inbox(queue, "", false, nil)
	check(next(deliveries).Reject(true))
	again := next(deliveries)
	equal(true, again.Redelivered)
	equal(int64(1), again.Headers["x-delivery-count"])
	check(again.Ack(false))
}

func stream(connection *amqp.Connection) {
	channel := confirming(connection)
	queue := channel.durable(amqp.Table{"x-queue-type": "stream"})
	defer channel.deleteQueue(queue)
	for number := 0; number < 10; number++ {
		equal(true, channel.confirmed("", queue, false, text(fmt.Sprint(number))))
	}
	for _, offset := range []any{"first", 0, int64(4), "1h"} {
		reader := open(connection)
		check(reader.Qos(100, 0, false))
		deliveries := reader.inbox(queue, "", false, amqp.Table{"x-stream-offset": offset})
		number := 0
		if offset == int64(4) {
			number = 4
		}
		for ; number < 10; number++ {
			got := next(deliveries)
			equal(int64(number), got.Headers["x-stream-offset"])
			equal(fmt.Sprint(number), string(got.Body))
			check(got.Ack(false))
		}
		check(reader.Close())
	}
}
