// File access by system calls. std::filesystem is not used: libtorch exports symbols of this library as compiled by its
// own compiler, and the linker resolves our calls to them. Where the two compilers differ, memory is corrupted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cresset {

std::string parent_folder(const std::string& path);  // "" for a name without a folder
bool is_folder(const std::string& path);
// Like mkdir -p. Returns false when the folder is absent and cannot be created.
bool make_folders(const std::string& path);

// Returns nullopt when the file is absent or could not be read completely.
std::optional<std::string> read_file(const std::string& path);
// Creates the folders and replaces the file atomically: the bytes are written under another name, which is then
// renamed. Returns false when the file is unchanged.
bool write_file(const std::string& path, std::string_view bytes);

// Returns CRESSET_CACHE_DIR, or the user's cache folder ($XDG_CACHE_HOME/cresset, ~/.cache/cresset), or "" when neither
// is set.
std::string cache_folder();

}  // namespace cresset
