"""Black box tests of the AMQP and HTTP ports, by section of the specification."""

import pytest

pytest.register_assert_rewrite("tests.conformance.raw")
