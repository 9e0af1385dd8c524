// Lines of programs that are in no file (notebooks, texts that were compiled), as Python's linecache has them.
#pragma once

namespace cresset::frontend {

// Printed graphs show the lines of Python programs from then on.
void install_source_lines();

}  // namespace cresset::frontend
