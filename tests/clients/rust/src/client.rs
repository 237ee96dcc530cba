//! What the scenarios share: channels, queues, publishes that are awaited, deliveries one by one.

use std::error::Error;
use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::*;
use lapin::publisher_confirm::Confirmation;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, Consumer};

pub type Found<Value> = Result<Value, Box<dyn Error>>;

pub fn table<const COUNT: usize>(fields: [(&str, AMQPValue); COUNT]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in fields {
        table.insert(name.into(), value);
    }
    table
}

pub fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Opens a channel in confirm mode.
pub async fn confirming(connection: &Connection) -> Found<Channel> {
    let channel = connection.create_channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    Ok(channel)
}

/// Declares an exclusive queue whose name the broker chooses.
pub async fn queue(channel: &Channel, arguments: FieldTable) -> Found<String> {
    let options = QueueDeclareOptions {
        exclusive: true,
        ..Default::default()
    };
    let queue = channel.queue_declare("", options, arguments).await?;
    Ok(queue.name().to_string())
}

/// Declares a durable queue, which the scenario has to delete.
pub async fn durable(channel: &Channel, arguments: FieldTable) -> Found<String> {
    let name = fresh()?;
    let options = QueueDeclareOptions {
        durable: true,
        ..Default::default()
    };
    channel.queue_declare(&name, options, arguments).await?;
    Ok(name)
}

pub fn fresh() -> Found<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    Ok(format!("rust-{}-{}", std::process::id(), now))
}

pub async fn delete(channel: &Channel, queue: &str) -> Found<()> {
    channel
        .queue_delete(queue, QueueDeleteOptions::default())
        .await?;
    Ok(())
}

/// Publishes and gives the broker's answer.
pub async fn publish(
    channel: &Channel,
    queue: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Found<Confirmation> {
    let options = BasicPublishOptions::default();
    Ok(channel
        .basic_publish("", queue, options, body, properties)
        .await?
        .await?)
}

pub async fn send(channel: &Channel, queue: &str, body: &str) -> Found<Confirmation> {
    publish(channel, queue, body.as_bytes(), BasicProperties::default()).await
}

pub async fn ready(channel: &Channel, queue: &str) -> Found<u32> {
    let options = QueueDeclareOptions {
        passive: true,
        ..Default::default()
    };
    let found = channel
        .queue_declare(queue, options, FieldTable::default())
        .await?;
    Ok(found.message_count())
}

pub async fn consume(
    channel: &Channel,
    queue: &str,
    tag: &str,
    no_ack: bool,
    arguments: FieldTable,
) -> Found<Consumer> {
    let options = BasicConsumeOptions {
        no_ack,
        ..Default::default()
    };
    Ok(channel
        .basic_consume(queue, tag, options, arguments)
        .await?)
}

/// Gives the next delivery; the end of the consumer is an error.
pub async fn next(consumer: &mut Consumer) -> Found<Delivery> {
    Ok(consumer.next().await.ok_or("the consumer ended")??)
}

pub async fn bodies(consumer: &mut Consumer, count: usize) -> Found<Vec<String>> {
    let mut found = Vec::new();
    while found.len() < count {
        found.push(String::from_utf8(next(consumer).await?.data)?);
    }
    Ok(found)
}

pub fn header(delivery: &Delivery, name: &str) -> Found<AMQPValue> {
    let headers = delivery.properties.headers().as_ref().ok_or("no headers")?;
    Ok(headers
        .inner()
        .get(name)
        .ok_or(format!("no header {}", name))?
        .clone())
}

pub fn equal<Value: PartialEq + Debug>(expected: Value, found: Value) -> Found<()> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{:?} was expected, {:?} is there", expected, found).into())
}
