// Files of the cache folder: complete or absent, and checked when they are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cresset::codegen {

std::string content_hash(std::string_view text);  // 32 hex digits

// CRESSET_CACHE_DIR, or the user's cache folder.
std::string default_cache_folder();

// Returns the bytes of write_checked(), or nullopt when the file is absent or damaged.
std::optional<std::string> read_checked(const std::string& path);
// Best effort; creates the folder and never writes half a file.
void write_checked(const std::string& path, std::string_view bytes);

}  // namespace cresset::codegen
