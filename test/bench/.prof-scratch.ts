import { mkdtemp, rm } from "node:fs/promises";
import { epoch, fleetId, sandboxKey, sandboxProfile, workerId } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
const mode = process.argv[2] ?? "exec"; const n = Number(process.argv[3] ?? 2000);
const root = await mkdtemp("/tmp/bench-scratch-");
const d = new DockerDriver({ fleet: fleetId.parse("prof-"+process.pid), worker: workerId.parse("w"), workspacesRoot: root, ...(process.env.INIT ? { initPath: process.env.INIT } : {}) });
const s = await d.start({ key: sandboxKey.parse("acme"), epoch: epoch.parse(1), profile: sandboxProfile.parse({limits:{cpus:Number(process.env.CPUS??1)}}), leaseMs: 10000 });
const p=(a:number[],q:number)=>a.toSorted((x,y)=>x-y)[Math.floor(a.length*q)]!.toFixed(3);
const c=(await import("node:child_process")).spawn("sh",["-c","sleep 0.5"]);
try { console.log("fleet prof-"+process.pid); await new Promise(r=>setTimeout(r,2500));
if (mode==="exec") { const ts:number[]=[], ws:number[]=[], ss:number[]=[];
 const argv = process.env.ARGV?.split(" ");
 for (let i=0;i<n;i++){const t=performance.now(); const r=await s.exec(argv?{argv}:{command:"true"}); ts.push(performance.now()-t); ws.push(r.wallMs); const t2=performance.now(); await s.stats(); ss.push(performance.now()-t2);}
 console.log("rt", p(ts,.5),p(ts,.99),"wall",p(ws,.5),p(ws,.99),"stats",p(ss,.5),p(ss,.99)); }
if (mode==="thr") { for (let k=0;k<4;k++){ const c0=await s.stats(); const t=performance.now(); let c=0; await Promise.all(Array.from({length:8},async()=>{while(c<n){c++; await s.exec({command:"true"})}})); const el=performance.now()-t; const c1=await s.stats(); console.log("thr", (c/el*1000).toFixed(0), "cpu/cmd", ((c1.cpuMs-c0.cpuMs)/c).toFixed(3), "worker cpu/cmd"); } }
if (mode==="out") { await s.exec({command:"head -c 200000000 /dev/zero > big"}); for (let k=0;k<n;k++){ const u0=process.cpuUsage(); const c0=await s.stats(); const t2=performance.now(); let b=0,ch=0; const r=await s.exec({argv:["cat","big"]},{onOutput:(c)=>{b+=c.bytes.length;ch++}}); const el=performance.now()-t2; const c1=await s.stats(); const u=process.cpuUsage(u0); console.log(r.outcome.kind,"chunks",ch,"MB/s",(b/1e6/(el/1000)).toFixed(1),"sandbox cpu",(c1.cpuMs-c0.cpuMs).toFixed(0),"worker cpu",((u.user+u.system)/1000).toFixed(0),"wall",el.toFixed(0),"rss",(process.memoryUsage.rss()/1e6).toFixed(0)); } }
if (mode==="files") { const big=Buffer.alloc(10e6,65); for(let i=0;i<n;i++){const t3=performance.now(); await s.files.write("big",big); const t4=performance.now(); await s.files.read("big"); console.log("w",(t4-t3).toFixed(1),"r",(performance.now()-t4).toFixed(1));}
 const sm=Buffer.alloc(1000,65); for(let k=0;k<3;k++){const t=performance.now(); for(let i=0;i<1000;i++) await s.files.write("f"+i,sm); const t1=performance.now(); for(let i=0;i<1000;i++) await s.files.read("f"+i); console.log("1000 w",(t1-t).toFixed(0),"r",(performance.now()-t1).toFixed(0));} }
} finally { await s.stop(); await rm(root,{recursive:true,force:true}); }
