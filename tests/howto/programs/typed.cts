import sandbox = require("payment-sandbox");
import setUp = require("payment-sandbox/global-setup");
const project: Promise<sandbox.Project> = sandbox.newProject({ payment_methods: ["credit-card"] });
void project.then(setUp);
