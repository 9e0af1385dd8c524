// Prints schema and class of every operator with a row. tests/python/harness/check_schemas.py compares them with
// torch's registered schemas.
#include <fmt/format.h>

#include "ops/op_def.h"

namespace {

std::string_view text(cresset::ops::OpClass op_class) {
  using cresset::ops::OpClass;
  switch (op_class) {
    case OpClass::Pointwise:
      return "pointwise";
    case OpClass::View:
      return "view";
    case OpClass::Reduction:
      return "reduction";
    case OpClass::Concat:
      return "concat";
    case OpClass::Composite:
      return "composite";
    case OpClass::Extern:
      return "extern";
  }
  return "?";
}

}  // namespace

int main() {
  for (const cresset::ops::OpDef* def : cresset::ops::all()) fmt::print("{}\t{}\n", text(def->op_class), def->schema);
}
