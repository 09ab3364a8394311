// Two showers side by side in space, seen by one camera. Loaded when somebody looks, as it is the
// heaviest part of the page. Drawn only when something has changed.

import {
  AmbientLight, BoxGeometry, BufferGeometry, Color, DirectionalLight, EdgesGeometry, Float32BufferAttribute, InstancedMesh,
  LineBasicMaterial, LineSegments, Matrix4, MeshLambertMaterial, PerspectiveCamera, Scene, Vector3,
  WebGLRenderer,
} from "three";

import { heat } from "./palette.ts";
import type { Shower } from "./protocol.ts";

export interface SceneContent {
  space: [number, number, number];
  data: Shower;
  generated: Shower;
  low: number;   // GeV of the darkest and smallest
  high: number;  // GeV of the brightest and largest
}

export class ShowerScene {
  private renderer: WebGLRenderer;
  private scenes: [Scene, Scene] = [new Scene(), new Scene()];
  private camera = new PerspectiveCamera(32, 1, 0.1, 1000);
  private content: SceneContent | undefined;
  private azimuth = 0.6;
  private height = 0.35;
  private distance = 2.45;
  private waiting = false;

  // Throws where there is no WebGL.
  constructor(private readonly canvas: HTMLCanvasElement) {
    this.renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true,
      powerPreference: "low-power" });
    this.renderer.setPixelRatio(Math.min(2, devicePixelRatio));
    this.renderer.autoClear = false;
    this.renderer.setClearColor(0x000000, 0);
    canvas.addEventListener("webglcontextrestored", () => this.later());
  }

  show(content: SceneContent): void {
    this.content = content;
    this.fill(this.scenes[0], content.data);
    this.fill(this.scenes[1], content.generated);
    this.later();
  }

  // By angles in radians; the pole is not crossed.
  turn(azimuth: number, height: number): void {
    this.azimuth += azimuth;
    this.height = Math.min(1.5, Math.max(-1.5, this.height + height));
    this.later();
  }

  approach(factor: number): void {
    this.distance = Math.min(8, Math.max(1.2, this.distance * factor));
    this.later();
  }

  home(): void {
    [this.azimuth, this.height, this.distance] = [0.6, 0.35, 2.45];
    this.later();
  }

  get view(): [number, number, number] {
    return [this.azimuth, this.height, this.distance];
  }

  later(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  private fill(scene: Scene, shower: Shower): void {
    const { space, low, high } = this.content!;
    const largest = Math.max(...space);
    scene.traverse((child) => {
      if (child instanceof InstancedMesh || child instanceof LineSegments) {
        child.geometry.dispose();
        child.material.dispose();
        if (child instanceof InstancedMesh) child.dispose();
      }
    });
    scene.clear();
    scene.add(frame(space, largest));
    const cells = new InstancedMesh(new BoxGeometry(1, 1, 1), new MeshLambertMaterial(),
      shower.cells.length);
    const matrix = new Matrix4();
    const colour = new Color();
    shower.cells.forEach((cell, i) => {
      const share = brightness(shower.gev[i] ?? 0, low, high);
      const side = (0.22 + 0.75 * share) / largest;
      const at = cellPlace(cell, space);
      matrix.makeScale(side, side, side);
      matrix.setPosition((at[0] + 0.5 - space[0] / 2) / largest, (at[1] + 0.5 - space[1] / 2) / largest,
        (at[2] + 0.5 - space[2] / 2) / largest);
      cells.setMatrixAt(i, matrix);
      cells.setColorAt(i, colour.setRGB(...heat(share), "srgb"));
    });
    scene.add(cells, new AmbientLight(0xffffff, 2.2), this.light());
  }

  // From above and the side: faces of a cell are told apart.
  private light(): DirectionalLight {
    const light = new DirectionalLight(0xffffff, 1.6);
    light.position.set(1, 2, 0.5);
    return light;
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.content || width === 0 || height === 0) return;
    this.renderer.setSize(width, height, false);
    const beside = width >= height;
    const [w, h] = beside ? [width / 2, height] : [width, height / 2];
    const far = this.distance * Math.max(1, 1.12 * h / w);
    this.camera.aspect = w / h;
    this.camera.position.set(far * Math.cos(this.height) * Math.sin(this.azimuth),
      far * Math.sin(this.height), far * Math.cos(this.height) * Math.cos(this.azimuth));
    this.camera.lookAt(new Vector3(0, 0, 0));
    this.camera.updateProjectionMatrix();
    this.renderer.setScissorTest(true);
    this.scenes.forEach((scene, i) => {
      const [x, y] = beside ? [i * w, 0] : [0, (1 - i) * h];
      this.renderer.setViewport(x, y, w, h);
      this.renderer.setScissor(x, y, w, h);
      this.renderer.clear();
      this.renderer.render(scene, this.camera);
    });
    this.canvas.dataset["painted"] = String(Number(this.canvas.dataset["painted"] ?? 0) + 1);
  }
}

// Upright is y; z, along which showers grow, goes to the right at first.
export function cellPlace(cell: number, space: readonly [number, number, number]):
    [number, number, number] {
  const z = cell % space[2];
  const rest = Math.floor(cell / space[2]);
  return [Math.floor(rest / space[1]), rest % space[1], z];
}

function brightness(gev: number, low: number, high: number): number {
  if (!(gev > low)) return 0;
  return Math.min(1, Math.log(gev / low) / Math.log(high / low || Math.E));
}

// The calorimeter's edges, with an arrow into which showers fly.
function frame(space: readonly [number, number, number], largest: number): LineSegments {
  const box = new BoxGeometry(space[0] / largest, space[1] / largest, space[2] / largest);
  const edges = new EdgesGeometry(box);
  const z = space[2] / largest / 2;
  const arrow = [0, 0, -z - 0.28, 0, 0, -z - 0.04, 0.03, 0, -z - 0.1, 0, 0, -z - 0.04, -0.03, 0,
    -z - 0.1, 0, 0, -z - 0.04];
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new Float32BufferAttribute(
    [...(edges.getAttribute("position").array as Float32Array), ...arrow], 3));
  box.dispose();
  edges.dispose();
  return new LineSegments(geometry, new LineBasicMaterial({ color: 0x5b646c }));
}
