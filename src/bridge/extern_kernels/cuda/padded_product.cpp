// Products on a GPU with rows of an odd length, such as the scores of a vocabulary and their gradients. Libraries have
// fast kernels for rows that are multiples of 16 bytes alone. Operands are copied into rows of such a length, and
// results out of them, a part at a time; where this is estimated to take less time than the plain product.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "bridge/device/cuda/library_settings.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/cuda/copy_rows.h"
#include "bridge/extern_kernels/cuda/product_operands.h"
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
constexpr double kCopiedBytes = 3.4e12;

// The dimension whose length makes rows of an operand or of the result odd.
enum class Odd : uint8_t {
  Columns,  // of the second operand and the result
  Inner,    // columns of the first operand, rows of the second
  Rows,     // of the first operand, which is transposed in memory
};

struct Sizes {
  int64_t rows, columns, inner, element_bytes;
};

bool pays(Odd odd, const Sizes& s, at::ScalarType dtype) {
  const int64_t length = odd == Odd::Columns ? s.columns : odd == Odd::Inner ? s.inner : s.rows;
  const int64_t row = length * s.element_bytes;
  const Speed speed = speed_of(dtype);
  const double slower = row % 8 == 0 ? 1 : row % 4 == 0 ? speed.by_4_bytes : speed.by_2_bytes;
  int64_t copied = s.rows * s.inner;  // the first operand
  if (odd == Odd::Columns) copied = s.rows * s.columns + s.columns * s.inner;
  if (odd == Odd::Inner) copied += s.inner * s.columns;
  const double aligned =
      2.0 * static_cast<double>(s.rows) * static_cast<double>(s.columns) * static_cast<double>(s.inner) / speed.aligned;
  return aligned + 2.0 * static_cast<double>(copied * s.element_bytes) / kCopiedBytes < aligned * slower;
}

class PaddedProduct final : public ExternKernel {
 public:
  PaddedProduct(Odd odd, std::optional<TensorId> bias, TensorId a, TensorId b, TensorId out)
      : odd_(odd), bias_(bias), a_(a), b_(b), out_(out) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }

  void run(BoundContext& context) override {
    const at::Tensor &a = context.tensor(a_), &b = context.tensor(b_), &out = context.planned(out_);
    const at::Tensor bias = bias_ ? context.tensor(*bias_) : at::Tensor();
    if (out.scalar_type() == at::kFloat && !products_round_f32()) return product(bias, a, b, out);
    switch (odd_) {
      case Odd::Columns:
        return pad_columns(context, bias, a, b, out);
      case Odd::Inner:
        return pad_inner(context, bias, a, b, out);
      case Odd::Rows:
        return pad_rows(context, bias, a, b, out);
    }
  }

 private:
  static void product(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b, at::Tensor out) {
    bias.defined() ? at::addmm_out(out, bias, a, b) : at::mm_out(out, a, b);
  }

  // f(begin, count) for parts of `whole` rows whose buffers take about kBufferBytes.
  template <class F>
  static void in_parts(int64_t whole, int64_t row_bytes, int64_t multiple, F&& f) {
    const int64_t most = std::max<int64_t>(kBufferBytes / row_bytes / multiple, 1) * multiple;
    for (int64_t begin = 0; begin < whole; begin += most)
      f(begin, std::min(most, whole - begin), std::min(most, whole));
  }

  // What lies in the padding reaches the padding of the result alone.
  void pad_columns(BoundContext& context, const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b,
                   const at::Tensor& out) {
    const int64_t columns = out.size(1), length = padded(columns, out.element_size());
    const at::Tensor wide = at::empty({length, a.size(1)}, a.options()).t();
    wide.narrow(1, 0, columns).copy_(b);
    at::Tensor wide_bias;
    if (bias.defined()) {
      wide_bias = at::empty({length}, a.options());
      wide_bias.narrow(0, 0, columns).copy_(bias);
    }
    at::Tensor buffer;
    const int64_t multiple = kRowBytes / out.element_size();  // rows of the result that end at such a multiple
    in_parts(out.size(0), length * out.element_size(), multiple, [&](int64_t begin, int64_t count, int64_t most) {
      if (!buffer.defined()) buffer = at::empty({most, length}, out.options());
      const at::Tensor part = buffer.narrow(0, 0, count);
      product(wide_bias, a.narrow(0, begin, count), wide, part);
      copies_.copy(context, part.narrow(1, 0, columns), out.narrow(0, begin, count));
    });
  }

  void pad_inner(BoundContext& context, const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b,
                 const at::Tensor& out) {
    const int64_t inner = a.size(1), length = padded(inner, out.element_size());
    const at::Tensor tall = at::empty({length, b.size(1)}, b.options());
    tall.narrow(0, 0, inner).copy_(b);
    tall.narrow(0, inner, length - inner).zero_();
    at::Tensor buffer;
    in_parts(out.size(0), length * out.element_size(), 1, [&](int64_t begin, int64_t count, int64_t most) {
      if (!buffer.defined()) buffer = at::empty({most, length}, a.options());
      copies_.copy_padded(context, a.narrow(0, begin, count), buffer.narrow(0, 0, count));
      product(bias, buffer.narrow(0, 0, count), tall, out.narrow(0, begin, count));
    });
  }

  void pad_rows(BoundContext& context, const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b,
                const at::Tensor& out) {
    const int64_t multiple = kRowBytes / out.element_size();
    at::Tensor buffer;
    in_parts(out.size(0), a.size(1) * out.element_size(), multiple, [&](int64_t begin, int64_t count, int64_t most) {
      if (!buffer.defined()) buffer = at::empty({a.size(1), padded(most, out.element_size())}, a.options());
      copies_.copy_padded(context, a.narrow(0, begin, count).t(), buffer);
      product(bias, buffer.narrow(1, 0, count).t(), b, out.narrow(0, begin, count));
    });
  }

  const Odd odd_;
  const std::optional<TensorId> bias_;
  const TensorId a_, b_, out_;
  RowCopies copies_;
};

bool is_odd(int64_t length, const Sizes& s) { return length * s.element_bytes % kRowBytes != 0; }

// nullopt: all rows have even lengths, or several dimensions are odd.
std::optional<Odd> odd_dimension(const BoundSlot& a, const BoundSlot& b, const Sizes& s) {
  const bool transposed = a.strides[0] == 1 && a.strides[1] >= s.rows && s.rows > 1;
  const bool inner_in_rows = !transposed || (b.strides[0] == 1 && s.inner > 1);
  const bool columns = is_odd(s.columns, s), inner = inner_in_rows && is_odd(s.inner, s),
             rows = transposed && is_odd(s.rows, s);
  if (columns + inner + rows != 1) return std::nullopt;
  return columns ? Odd::Columns : inner ? Odd::Inner : Odd::Rows;
}

}  // namespace

std::unique_ptr<ExternKernel> bind_padded_product(const runtime::ExternCall& call, const BoundContext& context) {
  const std::optional<ProductOperands> operands = product_operands(call, context);
  if (!operands) return nullptr;
  const BoundSlot &left = context.slot(operands->a), &right = context.slot(operands->b);
  const Sizes sizes{left.sizes[0], right.sizes[1], left.sizes[1], static_cast<int64_t>(c10::elementSize(left.dtype))};
  const std::optional<Odd> odd = odd_dimension(left, right, sizes);
  if (!odd || !pays(*odd, sizes, left.dtype)) return nullptr;
  return std::make_unique<PaddedProduct>(*odd, operands->bias, operands->a, operands->b, operands->out);
}

}  // namespace cresset::bridge
