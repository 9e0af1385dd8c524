// Z3's shared library, opened when the first proof is asked for. Nothing links against it: cresset loads on machines
// without Z3.
#pragma once

namespace cresset::sym {

// True if Z3 is open. The first call looks for it: the file named by the environment variable CRESSET_Z3_LIBRARY, else
// libz3 in the folders of the dynamic linker.
bool open_z3();

}  // namespace cresset::sym
