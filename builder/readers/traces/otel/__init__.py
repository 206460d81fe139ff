"""OpenTelemetry spans: the GenAI conventions, OpenInference and MLflow."""
