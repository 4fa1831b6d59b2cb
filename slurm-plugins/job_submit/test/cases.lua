-- cases.lua JOB_SUBMIT.LUA CASES.TXT SITE_FILE: the answers of job_submit.lua as Slurm would call it, against the table.
-- MSA_JOB_SUBMIT_CONF names SITE_FILE, which is written here.
local script, table_file, site_file = arg[1], arg[2], arg[3]
local told
slurm = {
  SUCCESS = 0,
  user_msg = function(text) told = text end,
  log_error = function(format, ...) error("log_error: " .. string.format(format, ...), 0) end,
}
dofile(script)

local function fields_of(text)
  local fields = {}
  for part in (text .. " | "):gmatch("(.-) | ") do
    local key, value = part:match("^%s*([a-z]+)=(.*)$")
    if key then fields[key] = value:gsub("\\n", "\n") end
  end
  return fields
end

local function job_desc_of(fields)
  -- As Slurm gives it: from 0 on, nil where there is none.
  local environment, size = nil, 0
  local function add(text)
    environment = environment or {}
    environment[size] = text
    size = size + 1
  end
  for _, name in ipairs({ "module", "nam", "gateways" }) do
    if fields[name] then
      add("_SLURM_SPANK_OPTION_msa_" .. name .. "=" .. fields[name])
      add("MSA_SLURM_" .. name:upper() .. "=" .. fields[name])
    end
  end
  return {
    spank_job_env = environment, spank_job_env_size = size,
    het_job_offset = tonumber(fields.component or 4294967294), min_nodes = tonumber(fields.nodes or 4294967294),
    partition = fields.partition, features = fields.features, licenses = fields.licenses,
    array_inx = fields.array and "0-1" or nil, script = fields.script,
  }
end

local function answer(fields)
  local job_desc = job_desc_of(fields)
  told = nil
  local code = slurm_job_submit(job_desc, {}, 0)
  if code ~= 0 then return string.format("! %d %s", code, (tostring(told):gsub("^msa: ", ""))) end
  local set = {}
  for _, name in ipairs({ "partition", "features", "licenses" }) do
    if job_desc[name] ~= fields[name] then set[#set + 1] = name .. "=" .. tostring(job_desc[name]) end
  end
  return #set == 0 and "=" or "= " .. table.concat(set, " | ")
end

local site, asked, number, cases, failed = nil, nil, 0, 0, 0
for line in io.lines(table_file) do
  number = number + 1
  local first = line:sub(1, 1)
  if first == "@" then
    if line == "@none" then
      site = nil
    elseif line == "@clear" then
      site = ""
    else
      site = site .. line:sub(3) .. "\n"
    end
    os.remove(site_file)
    if site then
      local out = assert(io.open(site_file, "w"))
      out:write(site)
      out:close()
    end
  elseif first == "?" then
    asked = line
  elseif first == "=" or first == "!" then
    cases = cases + 1
    local got = answer(fields_of(asked:sub(2)))
    if got ~= line then
      failed = failed + 1
      print(string.format("%s:%d: %s\n  expected %s\n  got      %s", table_file, number, asked, line, got))
    end
  end
end
os.remove(site_file)
print(string.format("%d cases, %d failed (%s)", cases, failed, _VERSION))
os.exit((failed > 0 or cases == 0) and 1 or 0)
