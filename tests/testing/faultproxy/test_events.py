"""Messages in the queue, through boto3: their envelope, and what they announce."""

import json
from typing import Any

import pytest

from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets


class Queue:
    """The queue that a cloud sends its events to."""

    def __init__(self, cloud: AwsCloud) -> None:
        self.sqs = cloud.client("sqs")
        self.url = self.sqs.create_queue(QueueName="interruption")["QueueUrl"]
        cloud.proxy.queue = "interruption"

    def take(self) -> dict[str, Any]:
        """The next message, parsed; it is deleted."""
        (message,) = self.sqs.receive_message(QueueUrl=self.url)["Messages"]
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return dict(json.loads(message["Body"]))


@pytest.fixture
def fleets(aws_cloud: AwsCloud) -> Fleets:
    """Fleets whose template names an image only."""
    return Fleets(aws_cloud)


def test_a_spot_notice_comes_two_minutes_before_the_end(fleets: Fleets) -> None:
    """The warning is in the queue at once; then the instance ends, and says why."""
    queue, instance = Queue(fleets.cloud), fleets.launch(kind="spot")
    fleets.cloud.proxy.events.spot_notice(instance)

    message = queue.take()
    assert queue.url.startswith(fleets.cloud.proxy.url)
    assert ("EC2 Spot Instance Interruption Warning", "aws.ec2", "123456789012") == tuple(
        message[key] for key in ("detail-type", "source", "account")
    )
    assert {"instance-id": instance, "instance-action": "terminate"} == message["detail"]
    fleets.cloud.clock.advance(119)
    assert "running" == fleets.state(instance)
    fleets.cloud.clock.advance(1)
    found = fleets.described(instance)
    assert ("terminated", "Server.SpotInstanceTermination") == (found["State"]["Name"], found["StateReason"]["Code"])


def test_each_kind_of_message_has_its_detail(fleets: Fleets) -> None:
    """Rebalance ends nothing; health names instances; what is no JSON is sent as it is."""
    queue, instance = Queue(fleets.cloud), fleets.launch()
    events = fleets.cloud.proxy.events
    for send in (events.rebalance, lambda name: events.health([name]), events.reservation_notice):
        send(instance)
    events.state_change(instance, "stopping")
    events.raw('"no event"')

    seen = [queue.take() for _ in range(4)]
    assert [
        "EC2 Instance Rebalance Recommendation",
        "AWS Health Event",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Instance State-change Notification",
    ] == [message["detail-type"] for message in seen]
    assert [{"entityValue": instance}] == seen[1]["detail"]["affectedEntities"]
    assert "terminated" == fleets.state(instance)
