"""RabbitMQ's management API below `/api`: its paths, forms and statuses.

Each part is a module with a table `ROUTES`, listed in `router.py`: the operations by path and
method, each with a function from `Call` to `Response`.
"""
