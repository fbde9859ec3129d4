"""The distributed engine: RabbitMQ, Redis and S3, shared by any number of processes and machines."""
