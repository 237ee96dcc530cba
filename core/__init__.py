"""The broker core: AMQP 0-9-1 on one side, one door for applications on the other."""

VERSION = "0.1.0"
