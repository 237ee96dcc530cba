module warren/tests/clients

go 1.19

require github.com/rabbitmq/amqp091-go v1.10.0

require github.com/michaelklishin/rabbit-hole/v2 v2.12.0
