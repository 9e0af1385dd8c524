// Products on a GPU whose result has rows of an odd length, such as the scores of a vocabulary. Libraries have fast
// kernels for rows that are multiples of 16 bytes alone. The second operand is padded to that length, and the result is
// copied from padded rows, a few at a time; where this is estimated to take less time than the plain product.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "bridge/device/cuda/library_settings.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using runtime::TensorId;

constexpr int64_t kRowBytes = 16;
constexpr int64_t kBufferBytes = int64_t{64} << 20;

int64_t padded(int64_t length, int64_t element_bytes) {
  const int64_t multiple = kRowBytes / element_bytes;
  return (length + multiple - 1) / multiple * multiple;
}

// Measured on an H200: operations a second of products in aligned rows, by dtype, and how much longer they take in rows
// that are aligned to fewer bytes; bytes a second of a copy between rows of different alignment.
struct Speed {
  double aligned, by_4_bytes, by_2_bytes;
};
Speed speed_of(at::ScalarType dtype) { return dtype == at::kFloat ? Speed{3.6e14, 2.8, 2.8} : Speed{7e14, 2.9, 7.4}; }
constexpr double kCopiedBytes = 1.8e12;

bool pays(int64_t m, int64_t n, int64_t k, at::ScalarType dtype) {
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t row = n * element;
  if (row % kRowBytes == 0) return false;
  const Speed speed = speed_of(dtype);
  const double slower = row % 8 == 0 ? 1 : row % 4 == 0 ? speed.by_4_bytes : speed.by_2_bytes;
  const auto elements = static_cast<double>(m * n + n * k);
  const double aligned = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / speed.aligned;
  const double copies = 2.0 * elements * static_cast<double>(element) / kCopiedBytes;
  return aligned + copies < aligned * slower;
}

class PaddedProduct final : public ExternKernel {
 public:
  PaddedProduct(std::optional<TensorId> bias, TensorId a, TensorId b, TensorId out)
      : bias_(bias), a_(a), b_(b), out_(out) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }

  void run(BoundContext& context) override {
    const at::Tensor& a = context.tensor(a_);
    const at::Tensor& out = context.planned(out_);
    if (out.scalar_type() == at::kFloat && !products_round_f32()) return plain(context, a, out);
    const int64_t rows = out.size(0), columns = out.size(1);
    const int64_t length = padded(columns, out.element_size());
    // What lies in the padding reaches the padding of the result alone.
    const at::Tensor b = at::empty({length, a.size(1)}, a.options()).t();
    b.narrow(1, 0, columns).copy_(context.tensor(b_));
    at::Tensor bias;
    if (bias_) {
      bias = at::empty({length}, a.options());
      bias.narrow(0, 0, columns).copy_(context.tensor(*bias_));
    }
    const int64_t at_once = std::clamp<int64_t>(kBufferBytes / (length * out.element_size()), 1, rows);
    const at::Tensor buffer = at::empty({at_once, length}, out.options());
    for (int64_t row = 0; row < rows; row += at_once) {
      const int64_t count = std::min(at_once, rows - row);
      at::Tensor part = buffer.narrow(0, 0, count);
      bias_ ? at::addmm_out(part, bias, a.narrow(0, row, count), b) : at::mm_out(part, a.narrow(0, row, count), b);
      out.narrow(0, row, count).copy_(part.narrow(1, 0, columns));
    }
  }

 private:
  void plain(BoundContext& context, const at::Tensor& a, at::Tensor out) const {
    const at::Tensor& b = context.tensor(b_);
    bias_ ? at::addmm_out(out, context.tensor(*bias_), a, b) : at::mm_out(out, a, b);
  }

  const std::optional<TensorId> bias_;
  const TensorId a_, b_, out_;
};

bool leaves_scale(const runtime::ExternArg& arg, const BoundContext& context) {
  if (const auto* number = std::get_if<double>(&arg)) return *number == 1;
  const auto* size = std::get_if<runtime::SizeRef>(&arg);
  return size != nullptr && context.size(*size) == 1;
}

}  // namespace

std::unique_ptr<ExternKernel> bind_padded_product(const runtime::ExternCall& call, const BoundContext& context) {
  static const graph::OpId mm = graph::op_id("aten::mm"), addmm = graph::op_id("aten::addmm");
  const size_t first = call.op == addmm ? 1 : 0;
  if ((call.op != mm && call.op != addmm) || call.args.size() < first + 2) return nullptr;
  for (size_t i = first + 2; i < call.args.size(); ++i)
    if (!leaves_scale(call.args[i], context)) return nullptr;
  const auto *a = std::get_if<TensorId>(&call.args[first]), *b = std::get_if<TensorId>(&call.args[first + 1]);
  const auto* bias = first == 0 ? nullptr : std::get_if<TensorId>(&call.args[0]);
  if (a == nullptr || b == nullptr || (first == 1 && bias == nullptr) || call.results.size() != 1) return nullptr;
  const TensorId out = call.results[0];
  if (!out.valid() || !context.has_planned_memory(out)) return nullptr;
  const BoundSlot &left = context.slot(*a), &right = context.slot(*b);
  if (bias != nullptr && context.slot(*bias).sizes != std::vector<int64_t>{right.sizes[1]}) return nullptr;
  const bool narrow = left.dtype == at::kHalf || left.dtype == at::kBFloat16;
  if ((!narrow && left.dtype != at::kFloat) || !pays(left.sizes[0], right.sizes[1], left.sizes[1], left.dtype))
    return nullptr;
  return std::make_unique<PaddedProduct>(bias == nullptr ? std::nullopt : std::optional(*bias), *a, *b, out);
}

}  // namespace cresset::bridge
