"""Amazon Bedrock: captures of Converse and ConverseStream, and model invocation logs.

Invocation logs also contain InvokeModel bodies, in the form of the model's own API.
References: docs/formats/bedrock-converse.md, docs/formats/http-captures.md.
"""

from __future__ import annotations

from builder.readers.api.bedrock.bodies import is_converse_row
from builder.readers.api.capture.api_reader import api_reader
from builder.readers.api.capture.dialect import BEDROCK

READER = api_reader(
    BEDROCK,
    is_converse_row,
    "Amazon Bedrock: Converse captures (pair lines, VCR, HAR, nock), event streams, and "
    "model invocation logs of S3 and CloudWatch; known by blocks without a type, or by "
    "schemaType",
)
