#!lua
-- Puts a request beside the queue. One that belongs to an accepted job is left alone: only the first of an id counts.
-- KEYS  1 staged (string)
-- ARGV  1 request  2 ms until it is forgotten if no job is accepted for it  3 job id  4 tenant  then what facts.lua needs
-- Reply 1   put
--       0   there is an accepted job's
--       or the answer of nearly-full.lua
--- @include now.lua
--- @include elsewhere.lua
--- @include facts.lua
--- @include nearly-full.lua
if redis.call('PTTL', KEYS[1]) == -1 then
  return 0
end
local full = nearlyFull(fleetFacts(ARGV[3], ARGV[4]).full)
if full then
  return full
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
