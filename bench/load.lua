-- Requests for wrk: each line of the file that REQUESTS names is a path, a tab and a JSON body.
-- They are sent in turn. What came of it goes to standard output as one line of JSON.

local requests = {}
local threads = {}
local next_request = 0

function setup(thread)
  thread:set("offset", #threads * 7919)
  table.insert(threads, thread)
end

function init(_)
  local headers = { ["Content-Type"] = "application/json", ["Accept"] = "application/json" }
  for line in io.lines(os.getenv("REQUESTS")) do
    local path, body = line:match("^(%S+)\t(.*)$")
    table.insert(requests, wrk.format("POST", path, headers, body))
  end
  next_request = offset
  refused = 0
  wrong = 0
end

function request()
  next_request = next_request + 1
  return requests[next_request % #requests + 1]
end

function response(status, _, _)
  if status == 503 then
    refused = refused + 1
  elseif status ~= 200 then
    wrong = wrong + 1
  end
end

function done(summary, latency, _)
  local refused, wrong = 0, 0
  for _, thread in ipairs(threads) do
    refused = refused + thread:get("refused")
    wrong = wrong + thread:get("wrong")
  end
  local errors = summary.errors
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "p50": %.3f, "p99": %.3f, "most": %.3f, ' ..
    '"refused": %d, "wrong": %d, "lost": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3, refused, wrong,
    errors.connect + errors.read + errors.write + errors.timeout))
end
