"""Who exchanges messages: requestors and suppliers, in threads and on event loops."""
