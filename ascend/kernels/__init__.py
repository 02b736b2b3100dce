"""Each kernel is a class of schedules with its geometry, buffers, time, operations and product."""
