#pragma once

// A message between actors: one typed body and any number of payload Buffers.
//
// A body is a movable struct with `static constexpr std::string_view kName`, unique in the program:
//
//   struct Batch { static constexpr std::string_view kName = "batch"; std::int64_t events; };
//   Message message = Message::of(Batch{64}, {pixels, energies});
//   if (const Batch* batch = message.as<Batch>()) ...
//
// Bodies of up to kInlineBytes live inside the Message; larger ones are allocated. Payloads move by
// pointer: their bytes are never copied inside a process. A body that owns memory beyond its own
// struct tells its size with `std::int64_t bytes() const`, so that byte credits bound that too.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/lane.h"

namespace troupe::runtime {

// The way a message came: who sent it, through which input port, and where its credit goes back to.
// Links and transports implement it; an Origin outlives every message that came by it.
class Origin {
 public:
  // `trace_link`: see TraceFlow::link; 0: its messages are not traced.
  Origin(ActorId sender, std::string sender_name, std::string port, std::uint32_t trace_link = 0)
      : sender_(sender),
        trace_link_(trace_link),
        sender_name_(std::move(sender_name)),
        port_(std::move(port)) {}
  virtual ~Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  ActorId sender() const { return sender_; }
  const std::string& sender_name() const { return sender_name_; }
  const std::string& port() const { return port_; }
  std::uint32_t trace_link() const { return trace_link_; }

  // One message of `bytes` gave its credit back; called at most once per message, from any thread.
  virtual void give_back(std::int64_t bytes) = 0;
  // `change` more messages of this origin stand in the receiver's mailbox. The receiver's thread.
  virtual void count_queued(std::int64_t change) = 0;
  // A message could not be delivered: counts it, and returns whether its sender wants it back. Any
  // thread.
  virtual bool undelivered() = 0;

 private:
  ActorId sender_;
  std::uint32_t trace_link_;
  std::string sender_name_;
  std::string port_;
};

// Movable, not copyable; one owner and so one thread at a time. A moved-from Message is empty. A
// received Message must not outlive the node that delivered it.
class Message {
 public:
  static constexpr std::size_t kInlineBytes = 64;
  // The cost of every message in byte credits besides its payloads.
  static constexpr std::int64_t kOverheadBytes = 128;

  // An empty message can be assigned to, asked whether it is empty() and destroyed, but not sent.
  Message() = default;
  // A message not sent yet. Never fails.
  template <class Body>
  static Message of(Body body, std::vector<Buffer> payloads = {});

  Message(Message&& other) noexcept { take(other); }
  Message& operator=(Message&& other) noexcept;
  ~Message() { reset(); }

  bool empty() const { return type_ == nullptr; }
  // The body, or nullptr when it is of another type.
  template <class Body>
  const Body* as() const;
  template <class Body>
  Body* as();
  // The type of the body, for tables of handlers. Two messages are equal in it exactly when their
  // bodies are of one type; nullptr of an empty message.
  using Kind = const void*;
  Kind kind() const { return type_; }
  template <class Body>
  static Kind kind_of() {
    return &kBodyType<Body>;
  }
  // The body's kName; "" of an empty message.
  std::string_view name() const { return empty() ? std::string_view{} : type_->name; }

  // In the order they were given; shared with all other holders of the Buffers.
  std::span<const Buffer> payloads() const { return payloads_; }
  // Leaves the message without payloads, but with its credit.
  std::vector<Buffer> take_payloads() { return std::exchange(payloads_, {}); }
  // Its cost in byte credits: kOverheadBytes + payloads + the body's bytes(), fixed when it was
  // made.
  std::int64_t bytes() const { return bytes_; }

  // The sender of a received message, and the input port it arrived on ("control" for
  // send_control). kOutside, "" and "" before it was sent. The views live as long as the node.
  ActorId sender() const { return origin_ == nullptr ? kOutside : origin_->sender(); }
  std::string_view sender_name() const;
  std::string_view port() const;
  // nullptr before it was sent.
  Origin* origin() const { return origin_; }
  // For traces: the number of a received message among those of its origin, in the order of
  // sending, from 1; 0: not known.
  std::uint64_t number() const { return number_; }

  // A received message holds one message credit and bytes() byte credits of its link. An actor that
  // keeps it holds back the sender: this is the back-pressure. The credits return once: here, when
  // the message is sent on, or when it is destroyed.
  void release_credit();
  bool holds_credit() const { return holds_credit_; }

 private:
  friend class Outlet;
  friend class NodeCore;
  friend class RemoteLinks;
  friend class Peer;

  // The operations on a body whose type is not known; one object per type.
  struct BodyType {
    std::string_view name;
    bool trivial;  // moving it is copying kInlineBytes, destroying it is nothing
    void (*relocate)(void* to, void* from) noexcept;  // move there, destroy here
    void (*destroy)(void* storage) noexcept;
    void* (*body)(void* storage) noexcept;
  };
  template <class Body>
  static const BodyType kBodyType;
  template <class Body>
  static constexpr bool kInline = sizeof(Body) <= kInlineBytes &&
                                  alignof(Body) <= 16 && std::is_nothrow_move_constructible_v<Body>;

  // Moves from `other`; this holds nothing before.
  void take(Message& other) noexcept;
  // Destroys the body, lets the payloads go, and only then returns the credit.
  void reset() noexcept;
  // The message was sent by `origin` and holds its credit when `credit` says so.
  void attach(Origin& origin, bool credit, std::uint64_t number = 0);

  alignas(16) std::byte storage_[kInlineBytes];
  const BodyType* type_ = nullptr;
  std::vector<Buffer> payloads_;
  std::int64_t bytes_ = 0;
  Origin* origin_ = nullptr;
  bool holds_credit_ = false;
  std::uint64_t number_ = 0;
};

// The form in which a body of type Body is kept in kInlineBytes: itself, or a pointer to it.
template <class Body>
inline const Message::BodyType Message::kBodyType = {
    Body::kName, kInline<Body>&& std::is_trivially_copyable_v<Body>,
    [](void* to, void* from) noexcept {
      if constexpr (kInline<Body>) {
        Body* body = std::launder(static_cast<Body*>(from));
        ::new (to) Body(std::move(*body));
        body->~Body();
      } else {
        std::memcpy(to, from, sizeof(Body*));
      }
    },
    [](void* storage) noexcept {
      if constexpr (kInline<Body>) {
        std::launder(static_cast<Body*>(storage))->~Body();
      } else {
        delete *static_cast<Body**>(storage);
      }
    },
    [](void* storage) noexcept -> void* {
      if constexpr (kInline<Body>) {
        return storage;
      } else {
        return *static_cast<Body**>(storage);
      }
    }};

template <class Body>
Message Message::of(Body body, std::vector<Buffer> payloads) {
  Message message;
  message.bytes_ = kOverheadBytes;
  for (const Buffer& payload : payloads) {
    message.bytes_ += static_cast<std::int64_t>(payload.size());
  }
  if constexpr (requires { body.bytes(); }) message.bytes_ += body.bytes();
  if constexpr (kInline<Body>) {
    ::new (static_cast<void*>(message.storage_)) Body(std::move(body));
  } else {
    ::new (static_cast<void*>(message.storage_)) Body*(new Body(std::move(body)));
  }
  message.type_ = &kBodyType<Body>;
  message.payloads_ = std::move(payloads);
  return message;
}

template <class Body>
Body* Message::as() {
  if (type_ != &kBodyType<Body>) return nullptr;
  return std::launder(static_cast<Body*>(type_->body(storage_)));
}

template <class Body>
const Body* Message::as() const {
  return const_cast<Message*>(this)->as<Body>();
}

inline void Message::take(Message& other) noexcept {
  type_ = std::exchange(other.type_, nullptr);
  if (type_ != nullptr) {
    if (type_->trivial) {
      std::memcpy(storage_, other.storage_, kInlineBytes);
    } else {
      type_->relocate(storage_, other.storage_);
    }
  }
  payloads_ = std::move(other.payloads_);
  bytes_ = std::exchange(other.bytes_, 0);
  origin_ = std::exchange(other.origin_, nullptr);
  holds_credit_ = std::exchange(other.holds_credit_, false);
  number_ = other.number_;
}

inline void Message::reset() noexcept {
  if (type_ != nullptr && !type_->trivial) type_->destroy(storage_);
  type_ = nullptr;
  if (!payloads_.empty()) payloads_.clear();
  if (holds_credit_) release_credit();
}

inline Message& Message::operator=(Message&& other) noexcept {
  if (this != &other) {
    reset();
    take(other);
  }
  return *this;
}

}  // namespace troupe::runtime
