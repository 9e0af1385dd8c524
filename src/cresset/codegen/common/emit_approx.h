// exp, expm1, tanh, erf, sin and cos of f32 as inline code, within 2 units in the last place, specials included. A call
// would spill every vector register around it. Activations, softmax and positional encodings use these functions.
#pragma once

#include <functional>
#include <span>

#include "codegen/common/emit_state.h"

namespace cresset::codegen {

class ApproxEmitter {
 public:
  explicit ApproxEmitter(EmitState& state) : s_(state) {}
  llvm::Value* exp(llvm::Value* x);
  llvm::Value* expm1(llvm::Value* x);
  using Unary = std::function<llvm::Value*(llvm::Value*)>;
  using Binary = std::function<llvm::Value*(llvm::Value*, llvm::Value*)>;
  llvm::Value* tanh(llvm::Value* x);
  // The same with another exponential function, of arguments from 0 to 20, and another division. The result has half of
  // their relative errors.
  llvm::Value* tanh(llvm::Value* x, const Unary& exp, const Binary& divide);
  llvm::Value* erf(llvm::Value* x);
  // The same with another exponential function, of arguments from -18 to 0. Its absolute error must be below 2^-25.
  llvm::Value* erf(llvm::Value* x, const Unary& exp_of_negative);
  // Valid where no lane is beyond_wave(). Larger arguments, infinity and NaN need the library.
  llvm::Value* sin(llvm::Value* x);
  llvm::Value* cos(llvm::Value* x);
  llvm::Value* beyond_wave(llvm::Value* x);

 private:
  struct Reduced {
    llvm::Value* tail;      // mantissa - 1, to its own last place
    llvm::Value* mantissa;  // in [0.7, 1.42]
    llvm::Value* whole;     // the exponent, as a float...
    llvm::Value* exponent;  // ... and as an i32
  };
  Reduced exp_parts(llvm::Value* x);         // exp(x) = mantissa * 2^exponent, for |x| < 2^15
  llvm::Value* exp_bounded(llvm::Value* x);  // for results in the range of normal numbers
  llvm::Value* scale(const Reduced& parts);  // mantissa * 2^exponent, rounded once, if the machine supports it
  struct Angle {
    llvm::Value* rest;      // |rest| <= pi / 4, x == rest + quarters * pi / 2
    llvm::Value* quarters;  // i32
  };
  Angle quarter_turns(llvm::Value* x);
  llvm::Value* wave(llvm::Value* rest, llvm::Value* quarters);  // sin(rest + quarters * pi / 2)
  llvm::Value* power_of_two(llvm::Value* exponent);
  llvm::Value* horner(llvm::Value* x, std::span<const double> ascending);
  llvm::Value* number(llvm::Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  // The comparisons are ordered so that a NaN passes through.
  llvm::Value* at_most(llvm::Value* x, double limit);
  llvm::Value* at_least(llvm::Value* x, double limit);

  EmitState& s_;
};

}  // namespace cresset::codegen
