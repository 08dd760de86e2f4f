#!lua flags=allow-oom
-- Runs a command that a script of another hash slot left in its outbox, also on a full Redis.
-- KEYS  1 the key that it changes
-- ARGV  1 command  2… its further arguments
-- Reply 1
redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))
return 1
