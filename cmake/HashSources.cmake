# Writes OUTPUT, which defines the string CONSTANT of namespace cresset::SPACE, declared in HEADER: a hash of the files
# named in LIST, one a line. Run as a script at build time, whenever one of them has changed.
file(STRINGS ${LIST} sources)
set(hashes "")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "@HEADER@"

namespace cresset::@SPACE@ {

const char* const @CONSTANT@ = "@hash@";

}  // namespace cresset::@SPACE@
]] @ONLY)
