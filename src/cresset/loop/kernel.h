// The tensor loop IR: a kernel consists of loop dimensions, a DAG of scalars, and stores. The IR defines the
// computation; the code generator chooses vectors, tiles and threads.
//
// Semantics. A kernel's iteration space is outer x inner. Outer dimensions are independent: they run in any order, on
// any thread. A scalar which mentions no Inner variable, directly or through operands, is a row scalar and has a value
// for each outer point. Every other scalar has a value for each point. Reduce folds its operand over all inner points,
// starting from the combine's identity, in unspecified order and association. A Reduce is itself a row scalar. Scalars
// which use a Reduce are computed after it: a kernel with k dependent reductions passes k+1 times over the inner
// dimensions. Scan is a value of each point: the fold over all points up to this one, in order. A kernel with scans has
// a single inner dimension, and scans are sums, products, maxima or minima. A Store on row level happens once for each
// outer point, otherwise at each point. Both kinds happen after all reductions of the outer point. A Store with a
// condition happens only where the condition holds. A Store with a combine updates the element; points may share
// elements, and updates happen in any order, each rounded to the buffer's dtype. If points share an element of another
// Store, any of their values remains. Different buffers do not overlap. A kernel may load from and store to the same
// buffer; then each element is loaded and stored at the same address from the same point. bf16 and f16 are storage
// types: Load converts them to f32, Store rounds to nearest even.
//
// Index expressions (addresses in elements, Size scalars) are sym expressions over dimension variables, size symbols,
// and variables bound to i64 scalars of the kernel (indirect access). All other variables are errors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"
#include "base/result.h"
#include "sym/shape_env.h"

namespace cresset::loop {

using sym::ExprId;
using sym::VarId;
using ScalarId = Id<struct ScalarTag>;
using BufferId = Id<struct BufferTag>;

enum class Op : uint8_t {
#define CRESSET_SCALAR(name, arity, text) name,
#include "loop/kinds.def"
#undef CRESSET_SCALAR
};
int arity(Op op);  // Load: 0 even when masked
std::string_view to_string(Op op);

// Sum, Prod: in the operand's dtype. Any/All: bool. ArgMax/ArgMin: result i64, the row-major index over the inner
// dimensions of the first greatest (least) operand; NaN counts as greatest (least). Max/Min: NaN propagates.
enum class Combine : uint8_t { Sum, Prod, Max, Min, Any, All, ArgMax, ArgMin };
std::string_view to_string(Combine combine);

struct Scalar {
  Op op;
  DType dtype;  // of the result; never F16/BF16
  ScalarId a, b, c;
  double number = 0;         // Const, float dtypes
  int64_t integer = 0;       // Const, integer and bool dtypes
  ExprId expr;               // Size: the value; Load: the address
  BufferId buffer;           // Load
  DType round = DType::F32;  // RoundTo
  Combine combine = Combine::Sum;
  bool operator==(const Scalar&) const = default;
};

struct Dim {
  enum class Kind : uint8_t { Outer, Inner };
  VarId var;
  ExprId extent;
  Kind kind;
};

struct Buffer {
  DType dtype;
  bool written = false;
  bool read = false;
  std::string name;       // for messages
  bool by_value = false;  // a single element, read only; a launch may pass the element instead of its address
};

struct Store {
  BufferId buffer;
  ExprId address;
  ScalarId value;
  ScalarId condition = {};              // bool; invalid: the store always happens
  std::optional<Combine> combine = {};  // Sum, Max or Min: the element becomes combine(element, value)
};

struct Binding {  // an index variable whose value is an i64 scalar
  VarId var;
  ScalarId scalar;
};

// The contents of a report (ScalarBuilder::checked_index) without an index out of range.
inline constexpr int64_t kNothingReported = INT64_MIN;

class Kernel {
 public:
  explicit Kernel(std::shared_ptr<sym::ShapeEnv> env) : env_(std::move(env)) {}
  sym::ShapeEnv& env() const { return *env_; }

  std::vector<Dim> dims;  // outer dims first; row-major
  std::vector<Buffer> buffers;
  std::vector<Scalar> scalars;  // operands precede users
  std::vector<Store> stores;
  std::vector<Binding> bindings;

  const Scalar& operator[](ScalarId id) const { return scalars[id.index]; }
  ScalarId add(Scalar scalar);  // hash-consed
  // Returns the size symbols in extents, addresses and Size scalars, in canonical order (first mention).
  std::vector<VarId> size_symbols() const;

 private:
  std::shared_ptr<sym::ShapeEnv> env_;
  std::unordered_multimap<size_t, ScalarId> consed_;
};

// Builds scalars with local simplification (constants, casts to the same dtype, x*1, select on a constant).
class ScalarBuilder {
 public:
  explicit ScalarBuilder(Kernel& kernel) : kernel_(kernel) {}
  Kernel& kernel() { return kernel_; }

  ScalarId constant(DType dtype, double value);
  ScalarId constant_int(DType dtype, int64_t value);
  ScalarId size(ExprId value);  // i64
  ScalarId load(BufferId buffer, ExprId address, std::optional<ScalarId> mask = {});
  ScalarId cast(ScalarId a, DType dtype);  // F16/BF16 mean RoundTo this type, held in f32
  ScalarId unary(Op op, ScalarId a);
  ScalarId binary(Op op, ScalarId a, ScalarId b);
  ScalarId select(ScalarId condition, ScalarId then, ScalarId otherwise);
  ScalarId reduce(Combine combine, ScalarId a);
  ScalarId scan(Combine combine, ScalarId a);
  ExprId bind_index(ScalarId i64_scalar);  // a fresh variable with the scalar's value, for indirect addresses
  ScalarId philox(ScalarId seed, ScalarId stream, ScalarId position);
  // An index into `extent` elements, which no access leaves: for an index outside, `told` (or the index itself) is
  // stored to report[site], and its access goes to element 0. Loads need the mask where `extent` may be 0.
  struct CheckedIndex {
    ExprId index;
    std::optional<ScalarId> mask;
  };
  CheckedIndex checked_index(ScalarId i64_scalar, ExprId extent, BufferId report, int64_t site, ScalarId told = {},
                             ScalarId where = {});
  DType dtype(ScalarId id) const { return kernel_[id].dtype; }

 private:
  Kernel& kernel_;
};

std::string print(const Kernel& kernel);
std::string verify(const Kernel& kernel);  // empty when the invariants hold

// The reference semantics: runs the kernel point by point, in order. `buffers` point at element 0 (of the buffer's
// dtype). `symbols` has the values of size_symbols(), in the same order.
void interpret(const Kernel& kernel, void* const* buffers, const int64_t* symbols);

// Returns the structure without names. Two kernels with equal canonical text compute the same function of (buffers,
// symbols). Variables are renumbered by first mention, so kernels from different graphs share code.
std::string canonical_text(const Kernel& kernel);

}  // namespace cresset::loop
