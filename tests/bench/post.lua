-- wrk script: POSTs one chat request of about SIZE bytes, tagged with TEMPERATURE, over and over.
local size = tonumber(os.getenv("SIZE") or "1024")
local temperature = os.getenv("TEMPERATURE") or "0"
local model = os.getenv("MODEL") or "mock"
local stream = os.getenv("STREAM") or "false"
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = string.format(
  '{"model":"%s","temperature":%s,"stream":%s,"messages":[{"role":"user","content":"%s"}]}',
  model, temperature, stream, string.rep("x", math.max(1, size - 100)))
