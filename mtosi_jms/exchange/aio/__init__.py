"""The four roles for asyncio: `requestor.aio`, `supplier.aio`, `publisher.aio`, `subscriber.aio`, and `stub.aio`.

They are views of the ordinary objects, which hold the logic. A JMS session blocks and is for one thread, so threads
stand between it and the loops, as few as there can be:

* A requestor has one that sends and one that receives, for any number of requests and loops.
* A publisher has one that publishes, a subscriber one that receives.
* A supplier has one for each request that is answered at the same time, for each has a session of its own: what a
  session received is acknowledged by the thread that received it. They run the code of the blocking supplier, and wait
  for what the handlers, which all run in the loop, give them.

A thread is started when there is something to do and ends some seconds after the last of it, or when its role is
closed. Nothing polls.
"""
