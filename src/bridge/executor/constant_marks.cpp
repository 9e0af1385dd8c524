#include "bridge/executor/constant_marks.h"

#include <algorithm>
#include <map>

namespace cresset::bridge {
namespace {

// Number of tensors prefetched ahead of the check.
constexpr size_t kAhead = 8;

int64_t key_mark(const c10::TensorImpl& t) { return static_cast<int64_t>(t.key_set().raw_repr()); }

inline int64_t kind_mark(const c10::TensorImpl& t, bool with_grad) {
  const c10::Device device = t.device();
  return (with_grad && t.requires_grad() ? int64_t{1} << 48 : 0) |
         static_cast<int64_t>(c10::typeMetaToScalarType(t.dtype())) << 32 | static_cast<int64_t>(device.type()) << 16 |
         static_cast<uint8_t>(device.index());
}

}  // namespace

void ConstantMarks::set(const std::vector<at::Tensor>& constants, bool with_grad) {
  with_grad_ = with_grad;
  std::map<std::vector<int64_t>, std::vector<const c10::TensorImpl*>> by_kind;
  for (const at::Tensor& constant : constants) {
    const c10::TensorImpl& t = *constant.unsafeGetTensorImpl();
    std::vector<int64_t> marks = {key_mark(t), kind_mark(t, with_grad)};
    marks.insert(marks.end(), t.sizes().begin(), t.sizes().end());
    marks.insert(marks.end(), t.strides().begin(), t.strides().end());
    by_kind[std::move(marks)].push_back(&t);
  }
  for (auto& [marks, tensors] : by_kind) {
    std::sort(tensors.begin(), tensors.end());
    kinds_.push_back({marks[0], marks[1], static_cast<uint32_t>(marks.size() / 2 - 1),
                      static_cast<uint32_t>(numbers_.size()), static_cast<uint32_t>(tensors_.size()),
                      static_cast<uint32_t>(tensors_.size() + tensors.size())});
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
    numbers_.insert(numbers_.end(), marks.begin() + 2, marks.end());
  }
}

template <size_t kRank>
inline bool ConstantMarks::holds(const Kind& kind, const c10::TensorImpl& t) const {
  if (key_mark(t) != kind.keys || kind_mark(t, with_grad_) != kind.mark) return false;
  const c10::IntArrayRef sizes = t.sizes(), strides = t.strides();
  const size_t rank = kRank > 0 ? kRank : kind.rank;
  if (sizes.size() != rank) return false;
  const int64_t* const expected = numbers_.data() + kind.first;
  int64_t differences = 0;
  for (size_t d = 0; d < rank; ++d)
    differences |= (sizes.data()[d] ^ expected[d]) | (strides.data()[d] ^ expected[rank + d]);
  return differences == 0;
}

template <size_t kRank>
inline bool ConstantMarks::hold(const Kind& kind) const {
  for (size_t i = kind.begin; i < kind.end; ++i) {
    const auto* next = reinterpret_cast<const char*>(tensors_[std::min(i + kAhead, tensors_.size() - 1)]);
    __builtin_prefetch(next + 64);  // the first bytes are not read
    __builtin_prefetch(next + 128);
    if (!holds<kRank>(kind, *tensors_[i])) return false;
  }
  return true;
}

bool ConstantMarks::hold() const {
  return std::all_of(kinds_.begin(), kinds_.end(), [this](const Kind& kind) {
    switch (kind.rank) {
      case 1:
        return hold<1>(kind);
      case 2:
        return hold<2>(kind);
      case 4:
        return hold<4>(kind);
      default:
        return hold<0>(kind);
    }
  });
}

}  // namespace cresset::bridge
