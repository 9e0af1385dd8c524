// Files of the cache folder: whole or absent, and checked when they are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cresset::codegen {

std::string content_hash(std::string_view text);  // 32 hex digits

// CRESSET_CACHE_DIR, or the user's cache folder.
std::string default_cache_folder();

// What write_checked() wrote; nullopt when there is none, or when what is there is damaged.
std::optional<std::string> read_checked(const std::string& path);
// Best effort, makes the folder; never half a file.
void write_checked(const std::string& path, std::string_view bytes);

}  // namespace cresset::codegen
