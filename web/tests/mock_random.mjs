// Numbers that look random and are the same every time.

export class Random {
  constructor(seed) {
    this.state = (seed >>> 0) || 1;
  }

  // From 0 to 1.
  next() {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return this.state / 4294967296;
  }

  gauss() {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }
}
