#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

// Creates `path` (its parents too, with the same mode) unless it is there. kAlreadyExists: something there is
// not a directory; kPermissionDenied, also for a directory of another user; kResourceExhausted: disk full.
// With `owner` (root only) the directory itself is handed to that user.
Status MakeDirectory(const std::string& path, mode_t mode = 0700,
                     std::optional<UserIdentity> owner = std::nullopt);

// A directory for a daemon's state: made with mode `fresh`, or one of this user that is there, which is left
// as it is. kAlreadyExists: something there is not a directory; kPermissionDenied: another user's;
// kInvalidArgument: its mode lets others write in it or, unless this is root, reach it.
Status TakeDirectory(const std::string& path, mode_t fresh = 0700);

// Removes a file or a directory with all it holds; symbolic links are removed, not followed. Nothing there:
// ok.
Status RemoveTree(const std::string& path);

// Names in a directory, sorted, without "." and "..". kNotFound: no such directory.
Result<std::vector<std::string>> ListDirectory(const std::string& path);

// The whole file. kNotFound, kPermissionDenied; kResourceExhausted: larger than `limit`, both sizes named.
Result<std::string> ReadFile(const std::string& path, std::size_t limit);

// The last `limit` bytes at most, from the start of a line if any starts there. Empty if there is no file.
std::string ReadTail(const std::string& path, std::size_t limit);

// Replaces `path` in one step: readers see the old or the new text, never a part. kResourceExhausted: disk
// full (the old file stays).
Status WriteFileAtomically(const std::string& path, std::string_view text, mode_t mode = 0600);

}  // namespace msa
