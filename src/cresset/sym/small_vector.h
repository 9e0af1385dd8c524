// A vector of plain data whose first N elements live on the stack: term lists, operand lists, work lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace cresset::sym {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void truncate(size_t size) { size_ = size; }
  void erase_at(size_t i) {
    std::copy(data_ + i + 1, data_ + size_, data_ + i);
    --size_;
  }
  void assign(std::span<const T> values) {
    clear();
    for (const T& v : values) push_back(v);
  }

 private:
  void grow() {
    capacity_ *= 2;
    std::unique_ptr<T[]> bigger(new T[capacity_]);
    std::copy(data_, data_ + size_, bigger.get());
    heap_ = std::move(bigger);
    data_ = heap_.get();
  }

  T inline_[N];
  std::unique_ptr<T[]> heap_;
  T* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace cresset::sym
