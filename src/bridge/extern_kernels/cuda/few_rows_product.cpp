// Products of few rows with a matrix whose columns lie in memory one after another: a linear layer while text is
// generated. The time is that of reading the matrix, for which libraries' kernels are not made: here a row of it is
// read by a part of a warp, or by a block, as a generated kernel reads rows.
#include <algorithm>

#include "bridge/aten/dtypes.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/cuda/product_operands.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using loop::Combine;
using loop::Dim;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using runtime::TensorId;

// Measured on an H200: with more than a row, the threads' reads of a matrix beyond this size take longer than a
// library's product.
constexpr int64_t kMostRows = 4, kMostBytesOfRows = int64_t{12} << 20;

// out[m, n] = sum over k of a[m, k] * b[n, k] (+ bias[n]). Size symbols: rows, columns, inner, strides of a's and b's
// rows; strides of elements are 1, and out is contiguous.
WrittenKernel product_kernel(DType dtype, bool has_bias) {
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  loop::ScalarBuilder& b = kernel.scalars();
  const ExprId rows = kernel.size("rows"), columns = kernel.size("columns"), inner = kernel.size("inner"),
               a_step = kernel.size("a"), b_step = kernel.size("b");
  // Rows are neighbours: they read the same row of the matrix.
  const ExprId n = kernel.loop(columns, Dim::Kind::Outer), m = kernel.loop(rows, Dim::Kind::Outer),
               k = kernel.loop(inner, Dim::Kind::Inner);
  const ScalarId x = kernel.load(dtype, pool.add(pool.mul(m, a_step), k));
  const ScalarId y = kernel.load(dtype, pool.add(pool.mul(n, b_step), k));
  const ScalarId product = b.binary(Op::Mul, x, y);
  ScalarId sum = b.reduce(Combine::Sum, product);
  if (has_bias) sum = b.binary(Op::Add, sum, kernel.load(dtype, n));
  kernel.store(dtype, pool.add(pool.mul(m, columns), n), sum);
  return kernel;
}

using ProductKernels = WrittenKernels<std::pair<DType, bool>>;  // with and without bias
const ProductKernels::Compiled& compiled_product(DType dtype, bool has_bias) {
  static auto& all = *new ProductKernels;
  return all.get({dtype, has_bias}, [&] { return product_kernel(dtype, has_bias); });
}

class FewRowsProduct final : public ExternKernel {
 public:
  FewRowsProduct(const ProductKernels::Compiled& compiled, const std::vector<int64_t>& symbols,
                 const ProductOperands& operands)
      : operands_(operands), kernel_(compiled.kernel, operands.bias ? 4 : 3, symbols) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }
  bool needs_memory() const { return kernel_.needs_memory(); }

  void run(BoundContext& context) override {
    const at::Tensor &a = context.tensor(operands_.a), &b = context.tensor(operands_.b);
    const at::Tensor& out = context.planned(operands_.out);
    if (operands_.bias)
      kernel_.launch(context.launch_context(), {a, b, context.tensor(*operands_.bias), out});
    else
      kernel_.launch(context.launch_context(), {a, b, out});
  }

 private:
  const ProductOperands operands_;
  BoundWrittenKernel kernel_;
};

}  // namespace

std::unique_ptr<ExternKernel> bind_few_rows_product(const runtime::ExternCall& call, const BoundContext& context) {
  const std::optional<ProductOperands> operands = product_operands(call, context);
  if (!operands) return nullptr;
  const BoundSlot &a = context.slot(operands->a), &b = context.slot(operands->b), &out = context.slot(operands->out);
  const int64_t rows = a.sizes[0], inner = a.sizes[1], columns = b.sizes[1];
  const bool in_rows = (a.strides[1] == 1 || inner == 1) && (b.strides[0] == 1 || inner == 1);
  const bool dense = (out.strides[1] == 1 || columns == 1) && (out.strides[0] == columns || rows == 1);
  const int64_t bytes = rows * columns * inner * static_cast<int64_t>(c10::elementSize(b.dtype));
  if (rows > 1 && bytes > kMostBytesOfRows) return nullptr;
  if (rows < 1 || rows > kMostRows || inner == 0 || columns == 0 || !in_rows || !dense) return nullptr;
  if (operands->bias && context.slot(*operands->bias).strides[0] != 1 && columns > 1) return nullptr;
  const auto& found = compiled_product(*from_torch(a.dtype), operands->bias.has_value());
  if (found.kernel == nullptr) return nullptr;
  const std::vector<int64_t> symbols = found.source->in_order({{"rows", rows},
                                                               {"columns", columns},
                                                               {"inner", inner},
                                                               {"a", a.strides[0]},
                                                               {"b", columns == 1 ? inner : b.strides[1]}});
  auto product = std::make_unique<FewRowsProduct>(found, symbols, *operands);
  return product->needs_memory() ? nullptr : std::move(product);
}

}  // namespace cresset::bridge
