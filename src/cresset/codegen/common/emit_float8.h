// Conversions of 8-bit floats by integer instructions, which all targets and lanes have (loop/float8.h is the
// reference).
#pragma once

#include "codegen/common/emit_state.h"

namespace cresset::codegen {

llvm::Value* float8_to_float(EmitState& state, DType dtype, llvm::Value* codes);    // i8 -> f32
llvm::Value* float_to_float8(EmitState& state, DType dtype, llvm::Value* numbers);  // f32 -> i8

}  // namespace cresset::codegen
