"""The provider on the wire, with the permissions that its policies give it and no other."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.clouds.aws.clients import BotoApi
from tests.awscloud import REGION
from tests.awscloud import AwsCloud as Cloud
from tests.clouds.aws.eks import ACCESS_KEY, Eks


@pytest.fixture(scope="module")
def _aws_api(_proxy: Any) -> Iterator[BotoApi]:
    proxy, _ = _proxy
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        made = BotoApi(REGION, endpoint=proxy.url)
        yield made
        made.close()


@pytest.fixture
def eks(aws_cloud: Cloud, _aws_api: BotoApi) -> Eks:
    """A cluster whose EC2NodeClass is ready, and a provider that may do what Kerf's policies allow."""
    return Eks(aws_cloud, _aws_api)
