# What failed, in at most 60 lines, from the logs of deploy/test: for each failed entry of ctest the failing cases of gtest and unittest
# with what they say first, what a sanitizer said, or else its last lines; for each log without ctest's lines its errors.
#   awk -v skips=1 -f deploy/what_failed.awk LOG...    skips: entries that were skipped count as failed

function cut(text) {
  gsub(/\033\[[0-9;]*m/, "", text)
  return length(text) > 200 ? substr(text, 1, 197) "..." : text
}
function named(text) { if (!((entry, text) in known)) { known[entry, text] = 1; names[entry, ++name_count[entry]] = cut(text) } }
function detail(text) { details[entry, ++detail_count[entry]] = cut(text) }
function begin_entry(text) {
  heads[++entry] = cut(text)
  in_entry = 1
  running = ""
  follow = frames = last_count = 0
}
function end_entry(  i) {
  if (!in_entry) return
  in_entry = 0
  if (running != "") named("did not end: " running)
  if (!name_count[entry] && !detail_count[entry])
    for (i = last_count > 4 ? last_count - 4 : 1; i <= last_count; ++i) detail(last[i])
}
# Of a traceback the place in the test, then the error and what follows it.
function unittests_line() {
  if (/^(FAIL|ERROR): /) {
    named($0)
    frames = 1
    follow = 0
  } else if (/^Traceback /) {
    frames = name_count[entry]
    follow = 0
  } else if (/^-----|^=====/) {
    follow = 0
  } else if (frames && /^  File ".*", line [0-9]+, in (test_|setUp|tearDown)/) {
    place = $0
    sub(/^  File ".*\//, "", place)
    sub(/", line /, ":", place)
  } else if (frames && /^[A-Za-z_][A-Za-z0-9_.]*(: |$)/) {
    detail(place ": " $0)
    place = ""
    frames = 0
    follow = 3
  } else {
    return 0
  }
  return 1
}
function gtests_line() {
  if (/^\[ RUN      \] /) running = substr($0, 14)
  else if (/^\[       OK \] / || /^\[  SKIPPED \] /) running = ""
  else if (/^\[  FAILED  \] .* \([0-9]+ ms\)$/) {
    running = ""
    named($0)
  } else if (/: Failure$/) {
    detail($0)
    follow = 4
    return 1
  } else {
    return 0
  }
  follow = 0
  return 1
}
function sanitizers_line() {
  if (!/^SUMMARY: |: runtime error: |ERROR: [A-Za-z]*Sanitizer|ERROR: libFuzzer|WARNING: ThreadSanitizer/) return 0
  detail($0)
  return 1
}
function entrys_line() {
  if (/[^ ]/) last[++last_count] = $0
  if (gtests_line() || unittests_line() || sanitizers_line()) return
  if (follow && /[^ ]/) {
    --follow
    detail($0)
  }
}

FNR == 1 {
  end_entry()
  log_name = FILENAME
  sub(/.*\//, "", log_name)
  of_ctest = 0
}
/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
  end_entry()
  of_ctest = 1
  if (/\*\*\*/ && (skips || !/\*\*\*(Skipped|Not Run)/)) {
    text = $0
    sub(/^.*Test +#[0-9]+: /, "", text)
    sub(/ \.*\*\*\*/, ": ", text)
    sub(/ \.\.\.+ */, ": ", text)
    gsub(/  +/, " ", text)
    begin_entry(log_name ": " text)
  }
  next
}
/^ +Start +[0-9]+: / || /^[0-9]+% tests passed/ { end_entry(); next }
in_entry && of_ctest { entrys_line(); next }
!of_ctest && /: (fatal |runtime )?error: |^FAILED: |undefined reference to|^CMake Error|^SUMMARY: |ERROR: [A-Za-z]*(Sanitizer|Fuzzer)/ {
  if (!in_entry) begin_entry(log_name)
  detail($0)
}

# Lines of all entries if none has more than `share`.
function lines_with(share,  i, sum, size) {
  for (i = 1; i <= entry; ++i) {
    size = 1 + name_count[i] + detail_count[i]
    sum += size < share ? size : share
  }
  return sum
}
END {
  end_entry()
  for (share = 2; share < 59 && lines_with(share + 1) < 60;) ++share
  for (i = 1; i <= entry; ++i) {
    lines[++total] = heads[i]
    room = total + share - 1
    for (j = 1; j <= name_count[i] && total < room; ++j) lines[++total] = "  " names[i, j]
    for (j = 1; j <= detail_count[i] && total < room; ++j) lines[++total] = "    " details[i, j]
  }
  for (i = 1; i <= total && i < 60; ++i) print lines[i]
  if (total >= 60) printf "... and %d lines more of this kind\n", total - 59
}
