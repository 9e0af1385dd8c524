// Files of the cache folder: complete or absent, and checked when they are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cresset::codegen {

std::string content_hash(std::string_view text);  // 32 hex digits

// CRESSET_CACHE_DIR, or the user's cache folder.
std::string default_cache_folder();

// Returns the bytes of write_checked(), or nullopt when the file is absent or damaged. Reading makes the file a
// recently used file.
std::optional<std::string> read_checked(const std::string& path);
// Best effort; creates the folder and never writes half a file. Now and then, the files used longest ago are deleted
// (CRESSET_CACHE_SIZE).
void write_checked(const std::string& path, std::string_view bytes);

// The files of the cache folder which this process has read or written, sorted, for cresset.save_cache.
void note_used(const std::string& path);
std::vector<std::string> used_files();

// Deletes files below the folder, those used longest ago first, until at most `limit` bytes are left. Returns the
// number of deleted files.
int64_t bound_folder(const std::string& folder, int64_t limit);

}  // namespace cresset::codegen
