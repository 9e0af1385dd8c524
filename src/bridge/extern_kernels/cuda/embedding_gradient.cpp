// The gradient of an embedding's table on a GPU: rows of the gradient are added to the rows of the table that they came
// from, each element by an atomic addition. ATen sorts the indices, so that the order of a sum does not depend on
// chance; where torch.use_deterministic_algorithms asks for this, ATen's kernel stays. Sums of 16-bit numbers are kept
// in float32, in memory of their own.
#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include "bridge/aten/dtypes.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using loop::Dim;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using runtime::TensorId;

// Fewer indices are not sorted by ATen. float32 sums of 16-bit numbers take at most so many bytes for each byte of the
// gradient: a large table of which little is read has more to fill and to round than to add.
constexpr int64_t kLeastIndices = 3072, kMostBytesOfSums = 8;

// table[index[n], k] += gradient[n, k], unless index[n] is the padding or lies outside. Size symbols: indices, columns,
// rows of the table, padding.
WrittenKernel sum_kernel(DType dtype, DType sums, DType index_dtype) {
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  loop::ScalarBuilder& b = kernel.scalars();
  const ExprId indices = kernel.size("indices"), columns = kernel.size("columns"), rows = kernel.size("rows"),
               padding = kernel.size("padding");
  const ExprId n = kernel.loop(indices, Dim::Kind::Outer), k = kernel.loop(columns, Dim::Kind::Outer);
  const ScalarId index = b.cast(kernel.load(index_dtype, n), DType::I64);
  const ScalarId value = b.cast(kernel.load(dtype, pool.add(pool.mul(n, columns), k)), compute_dtype(sums));
  const ScalarId inside = b.binary(Op::BitAnd, b.binary(Op::Ge, index, b.constant_int(DType::I64, 0)),
                                   b.binary(Op::Lt, index, b.size(rows)));
  kernel.store(sums, pool.add(pool.mul(b.bind_index(index), columns), k), value,
               {.condition = b.binary(Op::BitAnd, inside, b.binary(Op::Ne, index, b.size(padding))),
                .combine = loop::Combine::Sum});
  return kernel;
}

using Key = std::tuple<DType, DType, DType>;
const WrittenKernels<Key>::Compiled& compiled_sum(const Key& key) {
  static auto& all = *new WrittenKernels<Key>;
  return all.get(key, [&] { return std::apply(sum_kernel, key); });
}

class EmbeddingGradient final : public ExternKernel {
 public:
  EmbeddingGradient(const WrittenKernels<Key>::Compiled& compiled, const std::vector<int64_t>& symbols,
                    TensorId gradient, TensorId indices, TensorId out)
      : gradient_(gradient), indices_(indices), out_(out), kernel_(compiled.kernel, 3, symbols) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }

  void run(BoundContext& context) override {
    const at::Tensor& out = context.planned(out_);
    const bool narrow = c10::elementSize(out.scalar_type()) < sizeof(float);
    const at::Tensor sums = narrow ? at::zeros(out.sizes(), out.options().dtype(at::kFloat)) : out;
    if (!narrow) out.zero_();
    kernel_.launch(context.launch_context(), {context.tensor(indices_), context.tensor(gradient_), sums});
    if (narrow) out.copy_(sums);
  }

 private:
  const TensorId gradient_, indices_, out_;
  BoundWrittenKernel kernel_;
};

bool is_dense(const BoundSlot& slot) {
  int64_t step = 1;
  for (size_t d = slot.sizes.size(); d-- > 0; step *= slot.sizes[d])
    if (slot.sizes[d] != 1 && slot.strides[d] != step) return false;
  return true;
}

}  // namespace

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
std::unique_ptr<ExternKernel> bind_embedding_gradient(const runtime::ExternCall& call, const BoundContext& context) {
  static const graph::OpId op = graph::op_id("aten::embedding_dense_backward");
  if (call.op != op || at::globalContext().deterministicAlgorithms()) return nullptr;
  const auto *gradient = std::get_if<TensorId>(&call.args[0]), *indices = std::get_if<TensorId>(&call.args[1]);
  const auto *rows = std::get_if<runtime::SizeRef>(&call.args[2]),
             *padding = std::get_if<runtime::SizeRef>(&call.args[3]);
  const auto* by_frequency = std::get_if<bool>(&call.args[4]);
  if (gradient == nullptr || indices == nullptr || rows == nullptr || padding == nullptr || by_frequency == nullptr ||
      *by_frequency || !context.has_planned_memory(call.results[0]))
    return nullptr;
  const BoundSlot &from = context.slot(*gradient), &at = context.slot(*indices), &to = context.slot(call.results[0]);
  const DType dtype = *from_torch(from.dtype);
  const int64_t columns = to.sizes[1];
  const bool narrow = byte_size(dtype) < byte_size(DType::F32);
  const DType sums = narrow ? DType::F32 : dtype;
  if (at.numel <= kLeastIndices || columns == 0 || !is_dense(from) || !is_dense(at) || !is_dense(to)) return nullptr;
  if (narrow && to.numel * byte_size(sums) > kMostBytesOfSums * from.numel * byte_size(dtype)) return nullptr;
  const auto& found = compiled_sum({dtype, sums, *from_torch(at.dtype)});
  if (found.kernel == nullptr) return nullptr;
  const std::vector<int64_t> symbols = found.source->in_order(
      {{"indices", at.numel}, {"columns", columns}, {"rows", to.sizes[0]}, {"padding", context.size(*padding)}});
  return std::make_unique<EmbeddingGradient>(found, symbols, *gradient, *indices, call.results[0]);
}

}  // namespace cresset::bridge
