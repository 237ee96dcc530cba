//! The scenarios, named as in tests/clients/scenarios.py.

use lapin::options::*;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Connection};

use crate::client::*;
use crate::{report, Outcome};

const PAYLOAD_BYTES: usize = 131_072 - 8; // of a body frame, with the frame size both sides agree on

pub async fn run_all(url: &str) {
    report(url, "publishes are confirmed", confirms).await;
    report(url, "unroutable messages come back", returns).await;
    report(url, "a full queue says nack", nacks).await;
    report(
        url,
        "a transaction is committed or rolled back",
        transaction,
    )
    .await;
    report(url, "calls are answered", calls).await;
    report(url, "numbers may be of any width", numbers).await;
    report(url, "a bad argument closes the channel", bad_argument).await;
    report(
        url,
        "properties and headers arrive as they were sent",
        properties,
    )
    .await;
    report(url, "bodies of all sizes arrive", sizes).await;
    report(url, "a prefetch bounds what is delivered", prefetch).await;
    report(url, "dead letters tell where they were", dead_letters).await;
    report(url, "the end of a queue cancels its consumer", cancels).await;
    report(url, "messages with a priority go first", priorities).await;
    report(url, "a single active consumer hands over", single_active).await;
    report(url, "a quorum queue counts what came back", quorum).await;
    report(url, "a stream is read from anywhere", stream).await;
}

async fn confirms(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let queue = queue(&channel, FieldTable::default()).await?;
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let mut answers = Vec::new();
    for number in 0..1000 {
        let (body, options) = (format!("{}", number), BasicPublishOptions::default());
        let published =
            channel.basic_publish("", &queue, options, body.as_bytes(), persistent.clone());
        answers.push(published.await?);
    }
    for answer in answers {
        equal(true, answer.await?.is_ack())?;
    }
    equal(1000, ready(&channel, &queue).await?)
}

async fn returns(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let options = BasicPublishOptions {
        mandatory: true,
        ..Default::default()
    };
    let properties = BasicProperties::default();
    let published = channel.basic_publish("amq.direct", "nobody", options, b"lost?", properties);
    let answer = published.await?.await?;
    equal(true, answer.is_ack())?;
    let message = answer.take_message().ok_or("nothing was returned")?;
    equal(
        (312, "NO_ROUTE"),
        (message.reply_code, message.reply_text.as_str()),
    )?;
    equal(&b"lost?"[..], &message.delivery.data)
}

async fn nacks(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let limits = [
        ("x-max-length", AMQPValue::LongInt(1)),
        ("x-overflow", text("reject-publish")),
    ];
    let queue = queue(&channel, table(limits)).await?;
    equal(true, send(&channel, &queue, "1").await?.is_ack())?;
    equal(true, send(&channel, &queue, "2").await?.is_nack())?;
    equal(1, ready(&channel, &queue).await?)
}

async fn transaction(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = queue(&channel, FieldTable::default()).await?;
    let at_once = BasicGetOptions { no_ack: true };
    channel.tx_select().await?;
    send(&channel, &queue, "1").await?;
    channel.tx_rollback().await?;
    send(&channel, &queue, "2").await?;
    equal(0, ready(&channel, &queue).await?)?;
    channel.tx_commit().await?;
    let message = channel
        .basic_get(&queue, at_once)
        .await?
        .ok_or("nothing was committed")?;
    equal(&b"2"[..], &message.data)?;
    equal(true, channel.basic_get(&queue, at_once).await?.is_none())?;
    Ok(channel.tx_commit().await?)
}

async fn calls(connection: Connection) -> Outcome {
    let (server, caller) = (
        connection.create_channel().await?,
        connection.create_channel().await?,
    );
    let queue = queue(&server, FieldTable::default()).await?;
    let mut questions = consume(&server, &queue, "", true, FieldTable::default()).await?;
    let direct = "amq.rabbitmq.reply-to";
    let mut answers = consume(&caller, direct, "", true, FieldTable::default()).await?;
    for number in 0..20 {
        let body = format!("{}", number);
        let id = BasicProperties::default().with_correlation_id(format!("id {}", number).into());
        publish(
            &caller,
            &queue,
            body.as_bytes(),
            id.clone().with_reply_to(direct.into()),
        )
        .await?;
        let question = next(&mut questions).await?;
        let reply_to = question
            .properties
            .reply_to()
            .clone()
            .ok_or("no reply-to")?;
        let answer = format!("re: {}", String::from_utf8(question.data)?);
        publish(&server, reply_to.as_str(), answer.as_bytes(), id.clone()).await?;
        let got = next(&mut answers).await?;
        equal(id.correlation_id(), got.properties.correlation_id())?;
        equal(format!("re: {}", number).as_bytes(), &got.data)?;
    }
    Ok(())
}

async fn numbers(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = fresh()?;
    for number in [
        AMQPValue::LongInt(5),
        AMQPValue::ShortShortInt(5),
        AMQPValue::ShortShortUInt(5),
        AMQPValue::ShortInt(5),
        AMQPValue::ShortUInt(5),
        AMQPValue::LongUInt(5),
        AMQPValue::LongLongInt(5),
    ] {
        let options = QueueDeclareOptions {
            exclusive: true,
            ..Default::default()
        };
        channel
            .queue_declare(&queue, options, table([("x-max-length", number)]))
            .await?;
    }
    Ok(())
}

async fn bad_argument(connection: Connection) -> Outcome {
    let (broken, sound) = (
        connection.create_channel().await?,
        connection.create_channel().await?,
    );
    let options = QueueDeclareOptions {
        exclusive: true,
        ..Default::default()
    };
    let arguments = table([("x-max-priority", AMQPValue::LongInt(256))]);
    let refused = match broken.queue_declare("rust-bad", options, arguments).await {
        Err(lapin::Error::ProtocolError(refused)) => refused,
        other => return Err(format!("256 was taken for a priority: {:?}", other).into()),
    };
    equal(406, refused.get_id())?;
    let start = "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'rust-bad";
    equal(true, refused.get_message().as_str().starts_with(start))?;
    equal(false, broken.status().connected())?;
    equal(
        0,
        ready(&sound, &queue(&sound, FieldTable::default()).await?).await?,
    )
}

async fn properties(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = queue(&channel, FieldTable::default()).await?;
    let sent = BasicProperties::default()
        .with_content_type("application/atom+xml".into())
        .with_content_encoding("identity".into())
        .with_headers(headers())
        .with_delivery_mode(2)
        .with_priority(4)
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_expiration("60000".into())
        .with_message_id("m".into())
        .with_timestamp(1_700_000_000)
        .with_type("t".into())
        .with_user_id("guest".into())
        .with_app_id("a".into());
    publish(&channel, &queue, b"body", sent.clone()).await?;
    let mut consumer = consume(&channel, &queue, "", true, FieldTable::default()).await?;
    let got = next(&mut consumer).await?;
    equal(&b"body"[..], &got.data)?;
    equal(sent, got.properties)
}

fn headers() -> FieldTable {
    let mut list = FieldArray::default();
    list.push(AMQPValue::LongInt(1));
    list.push(text("two"));
    table([
        ("bool", AMQPValue::Boolean(true)),
        ("byte", AMQPValue::ShortShortInt(-3)),
        ("octet", AMQPValue::ShortShortUInt(200)),
        ("short", AMQPValue::ShortInt(-300)),
        ("word", AMQPValue::ShortUInt(60_000)),
        ("int", AMQPValue::LongInt(-70_000)),
        ("unsigned", AMQPValue::LongUInt(4_000_000_000)),
        ("long", AMQPValue::LongLongInt(1 << 40)),
        ("float", AMQPValue::Float(0.5)),
        ("double", AMQPValue::Double(0.25)),
        (
            "decimal",
            AMQPValue::DecimalValue(DecimalValue {
                scale: 2,
                value: 314,
            }),
        ),
        ("text", text("grüße")),
        ("nothing", AMQPValue::Void),
        ("when", AMQPValue::Timestamp(1_700_000_000)),
        ("bytes", AMQPValue::ByteArray(vec![0, 206, 255].into())),
        ("list", AMQPValue::FieldArray(list)),
        (
            "table",
            AMQPValue::FieldTable(table([("deeper", text("x"))])),
        ),
    ])
}

async fn sizes(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = queue(&channel, FieldTable::default()).await?;
    let mut consumer = consume(&channel, &queue, "", true, FieldTable::default()).await?;
    let whole = PAYLOAD_BYTES;
    for size in [0, 1, whole - 1, whole, whole + 1, 2 * whole, 5_000_000] {
        let body: Vec<u8> = (0..size).map(|at| (at * at % 251) as u8).collect();
        publish(&channel, &queue, &body, BasicProperties::default()).await?;
        if next(&mut consumer).await?.data != body {
            return Err(format!("another body of {} octets", size).into());
        }
    }
    Ok(())
}

async fn prefetch(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let queue = queue(&channel, FieldTable::default()).await?;
    for number in 0..5 {
        send(&channel, &queue, &number.to_string()).await?;
    }
    channel.basic_qos(2, BasicQosOptions::default()).await?;
    let mut consumer = consume(&channel, &queue, "", false, FieldTable::default()).await?;
    let (first, second) = (next(&mut consumer).await?, next(&mut consumer).await?);
    equal(3, ready(&channel, &queue).await?)?;
    second
        .nack(BasicNackOptions {
            requeue: true,
            ..Default::default()
        })
        .await?;
    let again = next(&mut consumer).await?;
    equal((&b"1"[..], true), (&again.data, again.redelivered))?;
    first.ack(BasicAckOptions::default()).await?;
    equal(vec!["2".to_string()], bodies(&mut consumer, 1).await?)?;
    again.ack(BasicAckOptions { multiple: true }).await?;
    equal(vec!["3".to_string()], bodies(&mut consumer, 1).await?)
}

async fn dead_letters(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let dead = queue(&channel, FieldTable::default()).await?;
    let target = [
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
    ];
    let work = queue(&channel, table(target)).await?;
    send(&channel, &work, "try me").await?;
    let mut working = consume(&channel, &work, "", false, FieldTable::default()).await?;
    next(&mut working)
        .await?
        .reject(BasicRejectOptions { requeue: false })
        .await?;
    let mut letters = consume(&channel, &dead, "", true, FieldTable::default()).await?;
    let letter = next(&mut letters).await?;
    equal(&b"try me"[..], &letter.data)?;
    equal(text("rejected"), header(&letter, "x-first-death-reason")?)?;
    let deaths = header(&letter, "x-death")?;
    let death = deaths
        .as_array()
        .and_then(|all| all.as_slice()[0].as_field_table());
    let death = death.ok_or("no table in x-death")?.inner();
    for (name, value) in [
        ("queue", text(&work)),
        ("reason", text("rejected")),
        ("count", AMQPValue::LongLongInt(1)),
    ] {
        equal(Some(&value), death.get(name))?;
    }
    Ok(())
}

async fn cancels(connection: Connection) -> Outcome {
    let (channel, other) = (
        connection.create_channel().await?,
        connection.create_channel().await?,
    );
    let queue = queue(&channel, FieldTable::default()).await?;
    let mut consumer = consume(&channel, &queue, "mine", true, FieldTable::default()).await?;
    delete(&other, &queue).await?;
    match next(&mut consumer).await {
        Err(end) => equal("the consumer ended".to_string(), end.to_string()),
        Ok(delivery) => Err(format!("{:?} was delivered", delivery).into()),
    }
}

async fn priorities(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let queue = queue(
        &channel,
        table([("x-max-priority", AMQPValue::LongInt(10))]),
    )
    .await?;
    for priority in [1, 9, 5, 99] {
        let properties = BasicProperties::default().with_priority(priority);
        publish(
            &channel,
            &queue,
            priority.to_string().as_bytes(),
            properties,
        )
        .await?;
    }
    let mut consumer = consume(&channel, &queue, "", true, FieldTable::default()).await?;
    equal(
        "99 9 5 1".to_string(),
        bodies(&mut consumer, 4).await?.join(" "),
    )
}

async fn single_active(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let single = [("x-single-active-consumer", AMQPValue::Boolean(true))];
    let queue = queue(&channel, table(single)).await?;
    let mut first = consume(&channel, &queue, "first", true, FieldTable::default()).await?;
    let mut second = consume(&channel, &queue, "second", true, FieldTable::default()).await?;
    for number in 0..3 {
        send(&channel, &queue, &number.to_string()).await?;
    }
    equal("0 1 2".to_string(), bodies(&mut first, 3).await?.join(" "))?;
    channel
        .basic_cancel("first", BasicCancelOptions::default())
        .await?;
    send(&channel, &queue, "3").await?;
    equal(vec!["3".to_string()], bodies(&mut second, 1).await?)
}

async fn quorum(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let limit = ("x-delivery-limit", AMQPValue::LongInt(5));
    let queue = durable(&channel, table([("x-queue-type", text("quorum")), limit])).await?;
    send(&channel, &queue, "1").await?;
    let mut consumer = consume(&channel, &queue, "", false, FieldTable::default()).await?;
    next(&mut consumer)
        .await?
        .reject(BasicRejectOptions { requeue: true })
        .await?;
    let again = next(&mut consumer).await?;
    equal(true, again.redelivered)?;
    equal(
        AMQPValue::LongLongInt(1),
        header(&again, "x-delivery-count")?,
    )?;
    again.ack(BasicAckOptions::default()).await?;
    delete(&channel, &queue).await
}

async fn stream(connection: Connection) -> Outcome {
    let channel = confirming(&connection).await?;
    let queue = durable(&channel, table([("x-queue-type", text("stream"))])).await?;
    for number in 0..10 {
        send(&channel, &queue, &number.to_string()).await?;
    }
    for (offset, first) in [
        (text("first"), 0),
        (AMQPValue::LongInt(0), 0),
        (AMQPValue::LongLongInt(4), 4),
        (text("1h"), 0),
    ] {
        let reader = connection.create_channel().await?;
        reader.basic_qos(100, BasicQosOptions::default()).await?;
        let from = table([("x-stream-offset", offset)]);
        let mut consumer = consume(&reader, &queue, "", false, from).await?;
        for number in first..10 {
            let got = next(&mut consumer).await?;
            equal(
                AMQPValue::LongLongInt(number),
                header(&got, "x-stream-offset")?,
            )?;
            equal(number.to_string().as_bytes(), &got.data)?;
            got.ack(BasicAckOptions::default()).await?;
        }
        reader.close(200, "").await?;
    }
    delete(&channel, &queue).await
}
