"""RabbitMQ's management API below `/api`: its paths, forms and statuses.

A part of it is one file with a table `ROUTES`, named in `table.py`: path, method, who may, and a
function from `Call` to `Response`.
"""
