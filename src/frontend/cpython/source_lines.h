// Source lines of programs without a file (notebooks, compiled strings), from Python's linecache.
#pragma once

namespace cresset::frontend {

// From then on, printed graphs show the lines of Python programs.
void install_source_lines();

}  // namespace cresset::frontend
