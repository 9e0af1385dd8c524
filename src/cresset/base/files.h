// Files, by the system's calls. Not std::filesystem: libtorch exports that library's functions as its own compiler made
// them, and the linker takes those for ours; where the two compilers differ, memory is corrupted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cresset {

std::string parent_folder(const std::string& path);  // "" of a name alone
bool is_folder(const std::string& path);
// Like mkdir -p. False: it is not there, and cannot be made.
bool make_folders(const std::string& path);

// nullopt: there is no such file, or not all of it could be read.
std::optional<std::string> read_file(const std::string& path);
// Makes the folders. The file is whole or as it was before: it is written under another name and renamed. False: it is
// as it was before.
bool write_file(const std::string& path, std::string_view bytes);

// CRESSET_CACHE_DIR, or the user's cache folder ($XDG_CACHE_HOME/cresset, ~/.cache/cresset); "" where there is none.
std::string cache_folder();

}  // namespace cresset
