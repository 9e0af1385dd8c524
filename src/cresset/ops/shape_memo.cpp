#include "ops/shape_memo.h"

#include <algorithm>
#include <bit>

namespace cresset::ops {
namespace {

using graph::Arg;
using sym::ExprId;

// Writes arguments as words. Every part starts with its kind and its length, so different argument lists have different
// words.
class KeyWriter {
 public:
  // meanings: filled beside the words, unless nullptr.
  KeyWriter(const graph::Graph& graph, std::vector<uint32_t>& out, std::vector<MemoMiss>* meanings = nullptr)
      : graph_(graph), out_(out), meanings_(meanings) {}

  void write(const Arg& arg) {
    word(static_cast<uint32_t>(arg.index()), MemoMiss::Tensors);
    std::visit([this](const auto& held) { this->held(held); }, arg);
  }

 private:
  void word(uint32_t w, MemoMiss meaning = MemoMiss::Scalar) {
    out_.push_back(w);
    if (meanings_ != nullptr) meanings_->push_back(meaning);
  }
  void pair(uint64_t w) {
    word(static_cast<uint32_t>(w));
    word(static_cast<uint32_t>(w >> 32));
  }
  void length(size_t n) { word(static_cast<uint32_t>(n)); }
  static uint32_t device_word(graph::Device device) {
    return static_cast<uint32_t>(device.kind) << 8 | static_cast<uint8_t>(device.index);
  }

  void held(graph::None) {}
  void held(graph::StridedLayout) {}
  void held(graph::ValueId value) {
    const graph::TensorType& type = graph_.type(value);
    word(static_cast<uint32_t>(type.dtype) << 16 | device_word(type.device), MemoMiss::Tensors);
    word(static_cast<uint32_t>(type.rank()), MemoMiss::Tensors);
    for (const ExprId e : type.sizes) word(e.index, MemoMiss::Size);
    for (const ExprId e : type.strides) word(e.index, MemoMiss::Stride);
  }
  void held(const std::vector<graph::OptionalValue>& values) {
    word(static_cast<uint32_t>(values.size()), MemoMiss::Tensors);
    for (const graph::OptionalValue& v : values) {
      word(v.has_value(), MemoMiss::Tensors);
      if (v) held(*v);
    }
  }
  void held(ExprId e) { word(e.index); }
  void held(const std::vector<ExprId>& es) {
    length(es.size());
    for (const ExprId e : es) word(e.index);
  }
  void held(double d) { pair(std::bit_cast<uint64_t>(d)); }
  void held(bool b) { word(b); }
  void held(const std::vector<double>& ds) {
    length(ds.size());
    for (const double d : ds) held(d);
  }
  void held(const std::vector<bool>& bs) {
    length(bs.size());
    for (const bool b : bs) held(b);
  }
  void held(const std::string& text) {
    length(text.size());
    for (const char c : text) word(static_cast<uint8_t>(c));
  }
  void held(DType dtype) { word(static_cast<uint32_t>(dtype)); }
  void held(graph::Device device) { word(device_word(device)); }
  void held(graph::MemoryFormat format) { word(static_cast<uint32_t>(format)); }

  const graph::Graph& graph_;
  std::vector<uint32_t>& out_;
  std::vector<MemoMiss>* meanings_;
};

uint64_t hash_words(const std::vector<uint32_t>& words) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  uint64_t h = words.size();
  for (const uint32_t w : words) h = ((h ^ (h >> 29)) + w + 1) * kMultiplier;
  return h >> 8;
}

constexpr size_t kInitialTable = 256;

}  // namespace

void ShapeMemo::make_key(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  asked_.clear();
  asked_.push_back(op.index);
  KeyWriter writer(graph, asked_);
  for (const Arg& arg : args) writer.write(arg);
  asked_hash_ = hash_words(asked_);
}

const ShapeMemo::Entry* ShapeMemo::find(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  make_key(graph, op, args);
  const size_t mask = table_.empty() ? 0 : table_.size() - 1;
  for (size_t slot = asked_hash_ & mask; !table_.empty() && table_[slot] != 0; slot = (slot + 1) & mask) {
    const Key& key = keys_[table_[slot] - 1];
    if (key.hash == asked_hash_ && std::equal(asked_.begin(), asked_.end(), words_.begin() + std::ptrdiff_t(key.begin),
                                              words_.begin() + std::ptrdiff_t(key.end)))
      return &entries_[table_[slot] - 1];
  }
  note_miss(graph, args);
  return nullptr;
}

// The first differing word determines the reason.
void ShapeMemo::note_miss(const graph::Graph& graph, const std::vector<Arg>& args) {
  MemoMiss why = MemoMiss::First;
  if (const auto last = last_.find(asked_[0]); last != last_.end()) {
    const auto begin = words_.begin() + std::ptrdiff_t(keys_[last->second].begin);
    const auto end = words_.begin() + std::ptrdiff_t(keys_[last->second].end);
    const auto differs =
        static_cast<size_t>(std::mismatch(asked_.begin(), asked_.end(), begin, end).first - asked_.begin());
    std::vector<uint32_t> words{asked_[0]};
    std::vector<MemoMiss> meanings{MemoMiss::First};
    words.reserve(asked_.size()), meanings.reserve(asked_.size());
    KeyWriter writer(graph, words, &meanings);
    for (size_t i = 0; i < args.size() && meanings.size() <= differs; ++i) writer.write(args[i]);
    why = differs < meanings.size() ? meanings[differs] : MemoMiss::Tensors;
  }
  ++misses_[static_cast<size_t>(why)];
}

void ShapeMemo::add(Entry entry) {
  if (2 * (keys_.size() + 1) > table_.size()) grow();
  const size_t mask = table_.size() - 1;
  size_t slot = asked_hash_ & mask;
  while (table_[slot] != 0) slot = (slot + 1) & mask;
  last_[asked_[0]] = static_cast<uint32_t>(keys_.size());
  keys_.push_back({asked_hash_, words_.size(), words_.size() + asked_.size()});
  words_.insert(words_.end(), asked_.begin(), asked_.end());
  entries_.push_back(std::move(entry));
  table_[slot] = static_cast<uint32_t>(keys_.size());
}

void ShapeMemo::grow() {
  table_.assign(table_.empty() ? kInitialTable : 2 * table_.size(), 0);
  const size_t mask = table_.size() - 1;
  for (uint32_t i = 0; i < keys_.size(); ++i) {
    size_t slot = keys_[i].hash & mask;
    while (table_[slot] != 0) slot = (slot + 1) & mask;
    table_[slot] = i + 1;
  }
}

}  // namespace cresset::ops
