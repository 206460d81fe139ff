"""OpenTelemetry spans: GenAI conventions, OpenInference, MLflow."""
